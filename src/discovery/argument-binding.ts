import type { JsonObject } from '../contract/json-schema.js';
import type { ToolContext } from '../contract/tool-context.js';

/** Where one parameter of a method gets its value from. */
export type ArgumentBinding =
  | { readonly from: 'property'; readonly name: string }
  | { readonly from: 'rest'; readonly name: string }
  | { readonly from: 'arguments' }
  | { readonly from: 'context' }
  | { readonly from: 'signal' };

/** Calls a method of an instance with checked arguments, laid out in the order of its parameters. */
export type MethodCaller = (instance: object, args: JsonObject, context: ToolContext) => unknown;

type Reader = (args: JsonObject, context: ToolContext) => unknown;
type Methods = Readonly<Record<string | symbol, (...values: unknown[]) => unknown>>;

/**
 * The caller of a method: what can be decided once is decided here, not at each call. The method is looked
 * up at each call, so that a subclass or a test may replace it.
 */
export function createCaller(key: string | symbol, bindings: readonly ArgumentBinding[]): MethodCaller {
  const rest = bindings.findIndex(({ from }) => from === 'rest');
  const readers = bindings.map(readerOf);
  if (rest >= 0) return callWithRest(key, readers, rest);
  const [first, second, third, fourth, fifth] = readers;
  // Nearly all methods are short; laying their arguments out in an array would cost as much as the call.
  if (first === undefined) return (instance) => (instance as Methods)[key]?.();
  if (second === undefined)
    return (instance, args, context) => (instance as Methods)[key]?.(first(args, context));
  if (third === undefined)
    return (instance, args, context) =>
      (instance as Methods)[key]?.(first(args, context), second(args, context));
  if (fourth === undefined)
    return (instance, args, context) =>
      (instance as Methods)[key]?.(first(args, context), second(args, context), third(args, context));
  if (fifth === undefined)
    return (instance, args, context) =>
      (instance as Methods)[key]?.(
        first(args, context),
        second(args, context),
        third(args, context),
        fourth(args, context),
      );
  return (instance, args, context) =>
    (instance as Methods)[key]?.(...readers.map((read) => read(args, context)));
}

function callWithRest(key: string | symbol, readers: readonly Reader[], rest: number): MethodCaller {
  return (instance, args, context) => {
    const values = readers.map((read) => read(args, context));
    const others = (values[rest] as readonly unknown[] | undefined) ?? [];
    return (instance as Methods)[key]?.(...values.slice(0, rest), ...others);
  };
}

function readerOf(binding: ArgumentBinding): Reader {
  switch (binding.from) {
    case 'context':
      return (_args, context) => context;
    case 'signal':
      return (_args, context) => context.signal;
    case 'arguments':
      return (args) => args;
    default: {
      const { name } = binding;
      // An absent argument called `toString` must not be read from the prototype.
      if (name in Object.prototype) return (args) => (Object.hasOwn(args, name) ? args[name] : undefined);
      return (args) => args[name];
    }
  }
}
