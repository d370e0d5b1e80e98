import type { PromptOptions } from '../src/core/contract/declaration.js';
import { recordServed, refuseStandardDecorators } from '../src/core/metadata/class-record.js';

/**
 * Turns a method into a prompt of MCP servers. Its parameters are the arguments, which clients send as strings. It
 * returns a string, which becomes one user message, or content parts, or `{ messages: [{ role, content }] }`.
 *
 * @example
 * ```ts
 * @Prompt('Plan the delivery of an order')
 * planDelivery(@Param('Order id') orderId: string) {
 *   return `Plan the delivery of order ${orderId} for this week.`;
 * }
 * ```
 */
export const Prompt =
  (options: string | PromptOptions = {}): MethodDecorator =>
  (target, key, descriptor?: PropertyDescriptor) => {
    refuseStandardDecorators('@Prompt', key);
    const given = typeof options === 'string' ? { description: options } : options;
    recordServed({ target, key }, given, {
      served: { kind: 'prompt' },
      given,
      method: descriptor?.value,
    });
  };
