import type { JsonObject } from '../contract/json-schema.js';
import type { ToolContext } from '../contract/tool-context.js';

/** Where one parameter of a method gets its value from. */
export type ArgumentBinding =
  | { readonly from: 'property'; readonly name: string }
  | { readonly from: 'rest'; readonly name: string }
  | { readonly from: 'arguments' }
  | { readonly from: 'context' }
  | { readonly from: 'signal' };

/** Lays out checked arguments in the order of a method's parameters. */
export type ArgumentBinder = (args: JsonObject, context: ToolContext) => unknown[];

/** The binder of a method: what can be decided once is decided here, not at each call. */
export function createBinder(bindings: readonly ArgumentBinding[]): ArgumentBinder {
  const rest = bindings.findIndex(({ from }) => from === 'rest');
  const readers = bindings.map(readerOf);
  const bind: ArgumentBinder = (args, context) => {
    const values = new Array<unknown>(readers.length);
    for (let index = 0; index < readers.length; index += 1) values[index] = readers[index]?.(args, context);
    return values;
  };
  if (rest < 0) return bind;
  return (args, context) => {
    const values = bind(args, context);
    return [...values.slice(0, rest), ...((values[rest] as unknown[] | undefined) ?? [])];
  };
}

type Reader = (args: JsonObject, context: ToolContext) => unknown;

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
      // An absent argument called `toString` must not be read from the prototype (design, invariant 4).
      if (name in Object.prototype) return (args) => (Object.hasOwn(args, name) ? args[name] : undefined);
      return (args) => args[name];
    }
  }
}
