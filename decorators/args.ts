import { recordParameter } from '../src/metadata/record-tool.js';

/** Options of `@Args`. */
export interface ArgsOptions {
  /** class-validator groups whose rules apply; default: all rules, as class-validator does. */
  readonly groups?: readonly string[];
}

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
  return (target, key, index) =>
    recordParameter({ target, key, index }, { role: 'arguments', groups: options?.groups });
}
