import { Integer, Param, Tool, ToolContext, Toolset } from '#toolwright';
import { type Customer, customerSchema, type Item, itemsSchema } from './order-schema.js';

type Mode = 'exact' | 'fuzzy' | 'semantic';

/** The workloads as methods without further options. */
@Toolset()
export class PlainTools {
  @Tool('Add two numbers')
  async add(a: number, b: number) {
    return a + b;
  }

  @Tool('Search the invoices')
  async search(
    @Param({ minLength: 1, maxLength: 200 }) query: string,
    @Param({ enum: ['exact', 'fuzzy', 'semantic'] }) mode: Mode,
    @Param({ type: () => Integer, minimum: 1, maximum: 50 }) limit = 10,
    @Param({ items: () => String, maxItems: 10, required: false }) tags?: string[],
  ) {
    return `${mode} ${limit} ${tags?.length ?? 0} ${query}`;
  }

  @Tool('Create an order')
  async createOrder(
    @Param({ schema: customerSchema }) customer: Customer,
    @Param({ schema: itemsSchema }) items: readonly Item[],
    @Param({ additionalProperties: String }) labels: Readonly<Record<string, string>>,
  ) {
    return `${items.length} items for ${customer.address.city} by ${labels.channel}`;
  }
}

/** W1 with the context, the signal or a timeout. */
@Toolset()
export class OptionTools {
  @Tool('Add two numbers, with the context')
  async addWithContext(a: number, b: number, context: ToolContext) {
    return context.callId === '' ? 0 : a + b;
  }

  @Tool('Add two numbers, with the signal')
  async addWithSignal(a: number, b: number, signal: AbortSignal) {
    return signal.aborted ? 0 : a + b;
  }

  @Tool({ description: 'Add two numbers, in time', timeoutMs: 60_000 })
  async addInTime(a: number, b: number) {
    return a + b;
  }
}
