import type { ToolOptions } from '../src/core/contract/declaration.js';
import type { Tool as ToolContract } from '../src/core/contract/tool.js';
import { recordTool, refuseStandardDecorators } from '../src/core/metadata/class-record.js';

/**
 * Turns a method into a tool. The method stays an ordinary method that a unit test can call.
 *
 * The default name is the toolset's prefix and the method's name in snake_case (`getHTTPStatus` → `get_http_status`).
 * Parameters become the properties of the schema.
 *
 * @example
 * ```ts
 * @Tool('Find a customer’s orders, newest first')
 * findOrders(@Param('Customer id, e.g. cus_123') customerId: string, limit = 10) {
 *   return this.orders.find(customerId, limit);
 * }
 * ```
 */
export const Tool =
  (options: string | ToolOptions = {}): MethodDecorator =>
  (target, key, descriptor?: PropertyDescriptor) => {
    refuseStandardDecorators('@Tool', key);
    const given = typeof options === 'string' ? { description: options } : options;
    recordTool({ target, key }, given, { method: descriptor?.value });
  };

/** The interface of hand-written tools, documented there. The decorator has the same name. */
export type Tool = ToolContract;
