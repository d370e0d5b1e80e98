import { Injectable } from '@nestjs/common';
import { RetryToolCall, Tool } from 'toolwright';
import { CurrentUser } from '../auth/current-user.js';
import { OnlyFor } from '../auth/only-for.js';
import { AuditTrail } from './audit-trail.js';
import { NewOrder } from './new-order.js';
import { OrderBook } from './order-book.js';

/** A class, because decorator metadata needs parameter types that exist at run time. The user is not in the schema. */
type Me = { readonly id: string };

/** A large quantity may be a mistake of the model. */
const MANY = 10;

/** The order book as tools. An ordinary provider, with the application's guards, interceptors and injection. */
@Injectable()
export class OrderTools {
  constructor(
    private readonly orders: OrderBook,
    private readonly audit: AuditTrail,
  ) {}

  /**
   * List my orders, newest first
   * @param limit At most so many @integer @minimum 1 @maximum 100
   */
  @Tool({ annotations: { readOnly: true } })
  listOrders(@CurrentUser() me: Me, limit = 10) {
    return this.orders.ofUser(me.id, limit);
  }

  /** Place an order */
  @Tool({ approval: ({ quantity }) => Number(quantity) > MANY })
  placeOrder(@CurrentUser() me: Me, order: NewOrder) {
    const placed = this.orders.place(me.id, order);
    this.audit.record(`placed order ${placed.id}`);
    return placed;
  }

  /**
   * Cancel an open order
   * @param id Number of the order @integer
   */
  @Tool({ approval: true, annotations: { destructive: true } })
  cancelOrder(@CurrentUser() me: Me, id: number) {
    const cancelled = this.orders.cancel(me.id, id);
    if (cancelled === undefined)
      throw new RetryToolCall(`There is no open order ${id}; list the orders first.`);
    this.audit.record(`cancelled order ${id}`);
    return cancelled;
  }

  /** Report what was sold, for clerks */
  @Tool({ annotations: { readOnly: true } })
  @OnlyFor('clerk')
  reportSales() {
    return this.orders.sales();
  }
}
