import { recordParameter } from '../src/core/metadata/class-record.js';

/**
 * The parameter receives the call's `ToolContext` and is never part of the schema. Parameters of type `ToolContext`
 * or `AbortSignal` are injected without this decorator; use it if the type is an interface.
 *
 * @example
 * ```ts
 * @Tool('Who am I?')
 * whoAmI(@Context() context: Pick<ToolContext, 'data'>) {
 *   return context.data.userId;
 * }
 * ```
 */
export function Context(): ParameterDecorator {
  return (target, key, index) => recordParameter({ target, key, index }, { role: 'context' });
}
