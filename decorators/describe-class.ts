import type { ClassDescription, ClassType } from '../src/core/contract/declaration.js';
import { recordDescription } from '../src/core/metadata/class-record.js';

/** Any class, including classes with a private constructor. */
type DescribableClass = { readonly prototype: object };

/**
 * Registers the types of a class. `toolwright generate` writes these calls into a file that the application imports
 * once; writing them by hand is rarely needed. The function only records: discovery reads the record after explicit
 * schemas and `@Param`, and before decorator metadata.
 *
 * @example
 * ```ts
 * describeClass(ShopTools, {
 *   dependencies: [OrderService],
 *   tools: {
 *     findOrders: {
 *       description: 'Find a customer’s orders, newest first',
 *       parameters: [
 *         { name: 'customerId', schema: { type: 'string' } },
 *         { name: 'limit', optional: true, schema: { type: 'number', default: 10 } },
 *       ],
 *     },
 *   },
 * });
 * ```
 */
export function describeClass(target: DescribableClass, description: ClassDescription): void {
  recordDescription(target as ClassType, description);
}
