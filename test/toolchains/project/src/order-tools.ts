import { Tool, type ToolContext, Toolset } from 'toolwright/decorators';
import { Branch, NewLine, NewOrder } from './new-order.js';
import { Ledger } from './services.js';

/** State of an order. */
export enum OrderState {
  /** Not paid yet */
  Open = 'open',
  Paid = 'paid',
}

/** What is searched for. */
export interface Period {
  from: Date;
  to?: Date | null;
}

type Shape = { kind: 'circle'; radius: number } | { kind: 'square'; side: bigint };

@Toolset({ prefix: 'shop' })
export class OrderTools {
  constructor(private readonly ledger: Ledger) {}

  /**
   * Find a customer's orders, newest first.
   * @param customerId Customer id, e.g. `cus_123`
   * @param state Only orders in this state
   * @param limit At most so many @minimum 1 @maximum 50 @integer
   */
  @Tool()
  findOrders(
    customerId: string,
    state?: OrderState,
    page: { size: number; after?: string } = { size: 20 },
    limit = 10,
    context?: ToolContext,
  ): { found: string; at: string } {
    const found = [customerId, state ?? 'any', page.size, limit, context?.toolName].join(' ');
    return { found, at: this.ledger.stamp() };
  }

  /** Place an order. */
  @Tool()
  place(order: NewOrder): string {
    const isReal = order instanceof NewOrder && order.lines.every((line) => line instanceof NewLine);
    return `${isReal} ${order.due instanceof Date} ${order.lines.map(({ quantity }) => quantity).join()}`;
  }

  /** Anything else. */
  @Tool()
  mixed(
    period: Period,
    shapes: readonly Shape[],
    words: ('b' | 'a')[],
    tree: Branch,
    signal: AbortSignal,
    ...rest: (string | number)[]
  ): string {
    const sides = shapes.map((shape) => (shape.kind === 'square' ? typeof shape.side : 'radius'));
    return [
      period.from.getTime(),
      period.to,
      sides,
      words,
      tree.branches?.[0] instanceof Branch,
      signal.aborted,
      rest,
    ]
      .map(String)
      .join(' ');
  }
}
