import type { ClassType, ToolsetOptions } from '../src/core/contract/declaration.js';
import { recordToolset, refuseStandardDecorators } from '../src/core/metadata/class-record.js';

/**
 * Marks a class that has `@Tool` methods. `discoverTools` finds the class and injects its constructor. The decorator
 * only records: containers are not changed before discovery.
 *
 * @example
 * ```ts
 * @Toolset({ prefix: 'shop' })
 * class ShopTools {
 *   constructor(private readonly orders: OrderService) {}
 *
 *   @Tool('Find an order')            // offered as shop_find_order
 *   findOrder(id: string) {
 *     return this.orders.find(id);
 *   }
 * }
 * ```
 */
export function Toolset(options: ToolsetOptions = {}): (target: ClassType) => void {
  return (target: ClassType, context?: unknown) => {
    refuseStandardDecorators('@Toolset', context);
    recordToolset(target, options);
  };
}
