import { type CallRecord, defineTool, type JsonObject, type JsonSchema, ToolRegistry } from 'toolwright';

/** What a call made of its arguments. */
type CheckedCall =
  | {
      readonly ok: true;
      readonly value: JsonObject;
      readonly removed: readonly string[];
      readonly coerced: readonly string[];
    }
  | { readonly ok: false; readonly faults: readonly { readonly path: string; readonly message: string }[] };

/** Calls of a tool `search` with such parameters; a destructive one takes no keys that its schema does not know. */
function caller(parameters: JsonSchema, destructive = false): (args: unknown) => CallRecord {
  const tools = new ToolRegistry().register(
    defineTool({
      ...{ name: 'search', description: 'Searches', parameters, annotations: { destructive } },
      execute: () => 'found',
    }),
  );
  const invoke = tools.invoker();
  return (args) => {
    const invocation = invoke({ id: 'c', name: 'search', arguments: args as JsonObject }, {});
    if (invocation instanceof Promise) throw new Error('A call of a synchronous tool is synchronous.');
    return invocation.record;
  };
}

/** The arguments that calls of a tool get, with what was removed and coerced, or what the model is told of each. */
export function createChecker(parameters: JsonSchema): (args: unknown) => CheckedCall {
  const call = caller(parameters);
  return (args) => {
    const { status, arguments: value = {}, removed, repairs, result } = call(args);
    if (status === 'success')
      return { ok: true, value, removed, coerced: repairs.map((repair) => repair.replace(/^coerced /, '')) };
    const lines = result.forLLM.split('\n').filter((line) => line.startsWith('  - '));
    const faults = lines.map((line) => {
      const [, path = '', message = ''] = /^ {2}- (?:(\S+): )?(.*)$/.exec(line) ?? [];
      return { path, message };
    });
    return { ok: false, faults };
  };
}

/** All that the model is told of a call that is rejected, line by line. */
export function toldLines(schema: JsonSchema, args: unknown): readonly string[] {
  return caller(schema)(args).result.forLLM.split('\n');
}

/** What the model is told of arguments that do not fit, line by line; empty where they fit. */
export function toldFaults(schema: JsonSchema, args: unknown, destructive = false): readonly string[] {
  const { status, result } = caller(schema, destructive)(args);
  if (status === 'success') return [];
  return result.forLLM.split('\n').filter((line) => !/^(?:Received: |There is no property )/.test(line));
}

/** What a tool that takes any object gets of what was sent, or what is said of it in the place of an object. */
export const readArguments = reader();

function reader() {
  const call = caller({ type: 'object' });
  return (sent: unknown): ReadCall => {
    const { status, arguments: value = {}, repairs, result } = call(sent);
    if (status === 'success') return { ok: true, value, repairs };
    return { ok: false, message: result.forLLM.split('\n')[1]?.replace(/^ {2}- /, '') ?? '' };
  };
}

type ReadCall =
  | { readonly ok: true; readonly value: JsonObject; readonly repairs: readonly string[] }
  | { readonly ok: false; readonly message: string };
