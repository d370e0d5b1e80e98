import { Injectable } from '@nestjs/common';

/** An order of a customer. */
export interface Order {
  readonly id: number;
  readonly userId: string;
  readonly item: string;
  readonly quantity: number;
  readonly wrapping?: string;
}

/** The orders of the shop, in memory. */
@Injectable()
export class OrderBook {
  private readonly orders = new Map<number, Order>();

  place(userId: string, item: string, quantity: number): Order {
    const order = { id: this.orders.size + 1, userId, item, quantity };
    this.orders.set(order.id, order);
    return order;
  }

  ofUser(userId: string): readonly Order[] {
    return [...this.orders.values()].filter((order) => order.userId === userId);
  }

  /** `undefined` if the user has no such order. */
  wrap(userId: string, id: number, wrapping: string): Order | undefined {
    const order = this.orders.get(id);
    if (order?.userId !== userId) return undefined;
    const wrapped = { ...order, wrapping };
    this.orders.set(id, wrapped);
    return wrapped;
  }
}
