import { Injectable } from '@nestjs/common';
import { RetryToolCall, Tool, ToolContext } from 'toolwright';
import { OrderBook } from './order-book.js';

declare module 'toolwright' {
  interface ToolContextData {
    /** The user of the chat. */
    readonly userId?: string;
  }
}

/** What the model can do for a customer. */
@Injectable()
export class OrderTools {
  constructor(private readonly orders: OrderBook) {}

  /** List my orders */
  @Tool({ annotations: { readOnly: true } })
  listOrders(context: ToolContext) {
    return this.orders.ofUser(userOf(context));
  }

  /**
   * Place an order
   * @param item What is ordered
   * @param quantity How many pieces @integer @minimum 1
   */
  @Tool({ approval: true })
  placeOrder(context: ToolContext, item: string, quantity = 1) {
    return this.orders.place(userOf(context), item, quantity);
  }

  /**
   * Wrap an order as a present
   * @param id Number of the order @integer
   */
  @Tool()
  async wrapOrder(context: ToolContext, id: number) {
    const wrapping = await context.ask({
      message: 'Which colour?',
      schema: { type: 'string', minLength: 1 },
    });
    const order = this.orders.wrap(userOf(context), id, String(wrapping));
    if (order === undefined) throw new RetryToolCall(`There is no order ${id}; list the orders first.`);
    return order;
  }

  /** Find out the time zone of the customer; the browser says it */
  @Tool({ execution: 'client' })
  whereAmI(): void {}
}

function userOf({ data: { userId } }: ToolContext): string {
  if (userId === undefined) throw new Error('nobody is logged in');
  return userId;
}
