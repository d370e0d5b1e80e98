import { type CallRecord, defineTool, type JsonObject, type JsonSchema, ToolRegistry } from 'toolwright';

/** The result of validating the arguments of a call. */
type CheckedCall =
  | {
      readonly ok: true;
      readonly value: JsonObject;
      readonly removed: readonly string[];
      readonly coerced: readonly string[];
    }
  | { readonly ok: false; readonly faults: readonly { readonly path: string; readonly message: string }[] };

/** Calls of a tool `search` with these parameters. */
function caller(parameters: JsonSchema, options: object = {}): (args: unknown) => CallRecord {
  const tools = new ToolRegistry().register(
    defineTool({
      ...{ name: 'search', description: 'Searches', parameters, ...options },
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

/** The validated arguments of a tool's calls with removed and coerced keys, or the error message for the model. */
export function createChecker(parameters: JsonSchema, options: object = {}): (args: unknown) => CheckedCall {
  const call = caller(parameters, options);
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

/** The error message for the model of a rejected call, as lines. */
export function toldLines(schema: JsonSchema, args: unknown): readonly string[] {
  return caller(schema)(args).result.forLLM.split('\n');
}

/** The validation errors for the model, as lines; empty if they are valid. A destructive tool refuses unknown keys. */
export function toldFaults(schema: JsonSchema, args: unknown, destructive = false): readonly string[] {
  const { status, result } = caller(schema, { annotations: { destructive } })(args);
  if (status === 'success') return [];
  return result.forLLM.split('\n').filter((line) => !/^(?:Received: |There is no property )/.test(line));
}

/** The arguments that a tool without restrictions receives, or the error if they are not an object. */
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
