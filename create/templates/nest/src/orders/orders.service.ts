import { Injectable } from '@nestjs/common';
import type { PlaceOrder } from './order.dto.js';

@Injectable()
export class OrdersService {
  readonly #orders = new Map<string, PlaceOrder & { refunded?: boolean }>([
    ['ord_1', { email: 'ada@example.org', lines: [{ sku: 'green-tea', quantity: 1 }] }],
  ]);

  place(order: PlaceOrder): string {
    const id = `ord_${this.#orders.size + 1}`;
    this.#orders.set(id, order);
    return id;
  }

  find(id: string) {
    return this.#orders.get(id);
  }
}
