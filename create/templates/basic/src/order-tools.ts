import { RetryToolCall, Tool, Toolset } from 'toolwright';

/** Tools as methods: names, types and descriptions come from the signature and the comments. */
@Toolset()
export class OrderTools {
  readonly #orders = new Map([
    ['ord_1', { id: 'ord_1', total: 42, state: 'shipped' as 'shipped' | 'refunded' }],
  ]);

  /**
   * Show an order
   * @param orderId Id of the order, e.g. ord_1
   */
  @Tool()
  showOrder(orderId: string) {
    return this.#find(orderId);
  }

  /**
   * Refund an order
   * @param orderId Id of the order, e.g. ord_1
   * @param reason Why it is refunded
   */
  @Tool({ approval: true })
  refundOrder(orderId: string, reason: 'damaged' | 'late' | 'other' = 'other') {
    this.#find(orderId).state = 'refunded';
    return `Order ${orderId} was refunded (${reason}).`;
  }

  #find(orderId: string) {
    const order = this.#orders.get(orderId);
    // The model reads this message and can try again.
    if (order === undefined) throw new RetryToolCall(`There is no order ${orderId}. Known: ord_1.`);
    return order;
  }
}
