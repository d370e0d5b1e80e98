import { Injectable } from '@nestjs/common';
import { RetryToolCall, Tool } from 'toolwright';
import { PlaceOrder } from './order.dto.js';
import { OrdersService } from './orders.service.js';

@Injectable()
export class OrderTools {
  constructor(private readonly orders: OrdersService) {}

  /** Place an order */
  @Tool()
  placeOrder(order: PlaceOrder) {
    return { id: this.orders.place(order) };
  }

  /**
   * Show an order
   * @param orderId Id of the order, e.g. ord_1
   */
  @Tool({ annotations: { readOnly: true } })
  showOrder(orderId: string) {
    return this.#find(orderId);
  }

  /**
   * Refund an order
   * @param orderId Id of the order, e.g. ord_1
   */
  @Tool({ approval: true })
  refundOrder(orderId: string, reason: 'damaged' | 'late' | 'other' = 'other') {
    this.#find(orderId).refunded = true;
    return `Order ${orderId} was refunded (${reason}).`;
  }

  #find(orderId: string) {
    const order = this.orders.find(orderId);
    // The model reads this message and can try again.
    if (order === undefined) throw new RetryToolCall(`There is no order ${orderId}.`);
    return order;
  }
}
