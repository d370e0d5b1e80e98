import type { ResourceOptions } from '../src/core/contract/declaration.js';
import { recordServed, refuseStandardDecorators } from '../src/core/metadata/class-record.js';

/**
 * Turns a method into a resource of MCP servers, under a URI or a URI template (RFC 6570). The variables of the
 * template are the parameters of the method. It returns a string, bytes, content parts, any JSON value, or
 * `undefined` if the resource does not exist.
 *
 * @example
 * ```ts
 * @Resource('orders://{orderId}', 'An order with its items')
 * order(orderId: string) {
 *   return this.orders.find(orderId);
 * }
 * ```
 */
export const Resource =
  (uri: string, options: string | ResourceOptions = {}): MethodDecorator =>
  (target, key, descriptor?: PropertyDescriptor) => {
    refuseStandardDecorators('@Resource', key);
    const given: ResourceOptions = typeof options === 'string' ? { description: options } : options;
    const { mimeType, audience, priority, ttlMs, cacheScope, ...described } = given;
    const served = { kind: 'resource', uri, mimeType, audience, priority, ttlMs, cacheScope } as const;
    recordServed({ target, key }, described, { served, given, method: descriptor?.value });
  };
