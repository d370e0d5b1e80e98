import { Injectable } from '@nestjs/common';
import { PlaceOrder } from './order.dto.js';

@Injectable()
export class OrdersService {
  private readonly orders = new Map<string, PlaceOrder>();

  place(order: PlaceOrder): string {
    const id = `order_${this.orders.size + 1}`;
    this.orders.set(id, order);
    return id;
  }

  find(id: string): PlaceOrder | undefined {
    return this.orders.get(id);
  }
}
