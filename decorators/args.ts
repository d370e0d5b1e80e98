import type { ArgsOptions } from '../src/core/contract/declaration.js';
import { recordParameter } from '../src/core/metadata/class-record.js';

/**
 * The parameter receives the whole arguments object, as an instance of its DTO class. A single undecorated
 * parameter of a class type means the same.
 *
 * @example
 * ```ts
 * @Tool('Place an order')
 * place(@Args({ groups: ['create'] }) order: CreateOrderDto) { … }
 * ```
 */
export function Args(options: ArgsOptions = {}): ParameterDecorator {
  return (target, key, index) => recordParameter({ target, key, index }, { role: 'arguments', options });
}
