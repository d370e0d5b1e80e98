import { recordPublic, refuseStandardDecorators } from '../src/core/metadata/class-record.js';

/**
 * Makes a tool available to callers without a token. On a class, it applies to every tool that declares no `scopes`.
 * An MCP server with `oauth` lists and runs such tools before a user has signed in. The same as `@Tool({ public: true
 * })`.
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
