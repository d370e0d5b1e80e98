import { recordPublic, refuseStandardDecorators } from '../src/core/metadata/class-record.js';

/**
 * Offers a tool, or every tool of a class that declares no `scopes`, to callers without a token: an MCP server with
 * `oauth` lists it and runs it before anyone has signed in. The same as `@Tool({ public: true })`.
 *
 * @example
 * ```ts
 * @Public()
 * @Tool('Opening hours of the shop')
 * hours() {
 *   return 'Monday to Friday, 9:00 to 18:00';
 * }
 * ```
 */
export const Public =
  (): MethodDecorator & ClassDecorator =>
  (target: object, key?: string | symbol): void => {
    refuseStandardDecorators('@Public', key);
    recordPublic(target, key);
  };
