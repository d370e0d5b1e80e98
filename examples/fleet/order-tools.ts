import { setTimeout as pause } from 'node:timers/promises';
import { type Effect, type Reconciliation, RetryToolCall, Tool, ToolContext, Toolset } from 'toolwright';
import { OrderBook } from './order-book.js';

const CHAPTERS = 4;

/** The options of reports. */
export class ReportPace {
  /** @param reportMs The minimum duration of a report. */
  constructor(readonly reportMs: number) {}
}

/** The tools of the shop. They do not depend on the process that runs them. */
@Toolset()
export class OrderTools {
  constructor(
    private readonly orders: OrderBook,
    private readonly pace: ReportPace,
  ) {}

  /** List the orders of the shop */
  @Tool({ annotations: { readOnly: true } })
  listOrders() {
    return this.orders.list();
  }

  /**
   * Pay an order
   * @param order Number of the order @integer @minimum 1
   */
  @Tool({ approval: true, reconcile: 'findPayment' })
  async payOrder(order: number, context: ToolContext) {
    const payment = await this.orders.pay(order, context.idempotencyKey);
    if (payment === undefined) throw new RetryToolCall(`There is no order ${order}; list the orders first.`);
    return payment;
  }

  /** Reports the outcome of a payment whose process ended. */
  async findPayment({ idempotencyKey }: Effect): Promise<Reconciliation> {
    const payment = await this.orders.findPayment(idempotencyKey);
    return payment === undefined ? { status: 'not-done' } : { status: 'done', result: payment };
  }

  /**
   * Write the report on what was paid, which takes a while
   * @param year The year of the report @integer
   */
  @Tool({ background: { attempts: 3 }, annotations: { idempotent: true } })
  async writeReport(year: number, context: ToolContext) {
    console.log(`begins the report of ${year}`);
    for (let done = 1; done <= CHAPTERS; done += 1) {
      await pause(this.pace.reportMs / CHAPTERS, undefined, { signal: context.signal });
      context.progress({ done, total: CHAPTERS });
    }
    return `Report of ${year}: ${(await this.orders.paid()) / 100} euros were paid.`;
  }
}
