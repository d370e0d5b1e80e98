import type { Companion, ToolOptions } from '../../core/contract/declaration.js';
import type { JsonObject, JsonSchema, SchemaSource, ValueOf } from '../../core/contract/json-schema.js';
import type {
  AgentToolResult,
  AgentToolUpdateCallback,
  ToolDefinition,
  ToolExecutionContext,
} from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import {
  ToolDeclarationError,
  type UnplacedFault,
  undescribed,
  warnAuthor,
} from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { cached } from '../../core/kernel/cached.js';
import { isObject, isRecord, withoutUndefined } from '../../core/kernel/json.js';
import type { DeclaredKind } from '../../core/metadata/class-record.js';
import {
  agentToolFaults,
  definedToolFaults,
  givenOptions,
  unloadedExecuteFaults,
  unloadedSchemaFaults,
} from '../../core/metadata/tool-option-faults.js';
import { buildToolSchemas } from './tool-schemas.js';

/**
 * The type of the arguments of a schema: a Standard Schema's output, TypeBox's `static`, and for plain JSON Schema an
 * object with unknown values.
 */
export type ArgumentsOf<Source> = ValueOf<Source, JsonObject>;

/** Options of {@link defineTool}. */
export interface DefineToolOptions<Source extends SchemaSource>
  extends Omit<ToolOptions, 'parameters' | 'name' | Companion>,
    Pick<ToolDefinition, Companion> {
  readonly name: string;
  /** Default: no arguments. */
  readonly parameters?: Source;
  /** Without it, the client executes the tool. */
  execute?(args: ArgumentsOf<Source>, context: ToolContext): unknown;
}

/**
 * Defines a tool without a class, with the same result as `@Tool`. The schema determines the argument types of
 * `execute`.
 *
 * @throws ToolDeclarationError (502) if the name is illegal or the schema cannot be read.
 *
 * @example
 * ```ts
 * const add = defineTool({
 *   name: 'add',
 *   description: 'Adds two numbers',
 *   parameters: z.object({ a: z.number(), b: z.number() }),
 *   execute: ({ a, b }) => a + b,
 * });
 * ```
 */
export function defineTool<Source extends SchemaSource = JsonSchema>(
  options: DefineToolOptions<Source>,
): ToolDefinition {
  const wrong = [
    ...definedToolFaults(options),
    ...unloadedSchemaFaults(options),
    ...unloadedExecuteFaults(options),
  ];
  return toDefinition(options, { by: 'defineTool', wrong });
}

/** The function that creates the tool, and the faults that it found in the options. */
interface Maker {
  readonly by: string;
  readonly wrong: readonly UnplacedFault[];
}

/** Creates the tool, or throws all its faults. */
export function toDefinition<Source extends SchemaSource>(
  options: DefineToolOptions<Source>,
  { by, wrong }: Maker,
): ToolDefinition {
  // From JavaScript, or with circular imports.
  if (!isRecord(options))
    throw new ToolDeclarationError(wrong.map((fault) => ({ where: `${by}(${options})`, ...fault })));
  const { name, execute, ...others } = givenOptions(options);
  const schemas = buildToolSchemas(others);
  const faults: UnplacedFault[] = [...wrong, ...(schemas.ok ? [] : schemas.faults)];
  if (typeof name !== 'string')
    faults.unshift({ problem: 'it has no name', fix: 'a `name` that is a string' });
  else if (!TOOL_NAME.test(name)) faults.unshift(illegalName(name));
  const where = `${by}(${JSON.stringify(name)})`;
  if (faults.length > 0 || !schemas.ok)
    throw new ToolDeclarationError(faults.map((fault) => ({ where, ...fault })));
  if (!options.description?.trim())
    warnAuthor(undescribed(where, 'a `description` of what it does, and when to use it'));
  const { parameters, output, hydrate, warnings } = schemas;
  for (const warning of warnings) warnAuthor({ where, ...warning });
  const refuse = () => {
    throw new ToolwrightError(
      'NotExecutableHere',
      `The tool '${name}' is executed by the client; it cannot run here.`,
    );
  };
  const body = execute ?? refuse;
  const behaviour = execute ? others : { ...others, execution: 'client' as const };
  return freezeTool(behaviour, {
    name,
    parameters,
    output,
    hydrate,
    ignoresContext: (execute && ignoresContext(execute)) || undefined,
    // An instance of a class may use `this`.
    execute: Object.getPrototypeOf(options) === Object.prototype ? body : body.bind(options),
  });
}

/** The derived parts of a tool; they replace the author's options of the same name. */
type ToolParts = Partial<ToolDefinition> & Pick<ToolDefinition, 'name' | 'parameters' | 'execute'>;

/** A finished definition: the author's options and the derived parts, frozen, without undefined fields. */
export function freezeTool(options: Omit<ToolOptions, Companion>, parts: ToolParts): ToolDefinition {
  const all = { ...options, description: options.description ?? '', ...parts };
  const tool = Object.freeze(withoutUndefined(all)) as ToolDefinition;
  finished.add(tool);
  return tool;
}

/** Definitions that were fully checked when they were created. */
const finished = new WeakSet<object>();

/** Whether {@link freezeTool} created this definition, so that it needs no further check. */
export function isFinishedTool(tool: unknown): tool is ToolDefinition {
  return isObject(tool) && finished.has(tool);
}

/** The tool names that every provider accepts. */
export const TOOL_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;

/** The fault of a name that does not match {@link TOOL_NAME}. */
export function illegalName(
  name: string,
  kind: DeclaredKind = 'tool',
): { readonly problem: string; readonly fix: string } {
  return {
    problem: `the ${kind} name ${JSON.stringify(name)} is not accepted by every provider (${TOOL_NAME.source})`,
    fix: 'a `name` of letters, digits, _ and -, at most 64, not starting with a digit or -',
  };
}

/**
 * Whether a function certainly takes no context, according to its source, so that no context is created for it. If
 * the source is unclear, the function counts as taking a context.
 */
function ignoresContext(execute: (...args: never) => unknown): boolean {
  if (execute.length > 1) return false;
  const source = Function.prototype.toString.call(execute);
  if (/\barguments\b|\beval\b|\.\.\.|\[native code\]/.test(source)) return false;
  if (/^(?:async\s+)?[\w$]+\s*=>/.test(source)) return true;
  // One parameter in brackets. A default value may contain a bracket or a comma; then the result is unclear.
  let depth = 0;
  for (const character of source) {
    if (`'"\`/`.includes(character)) return false;
    if ('([{'.includes(character)) depth += 1;
    else if (')]}'.includes(character)) depth -= 1;
    else if (character === ',' && depth === 1) return false;
    if (depth === 0 && character === ')') return true;
  }
  return false;
}

/** An agent tool: `label` is its title; only the application receives `details`. */
export interface AgentTool<Source extends SchemaSource = SchemaSource, Details = unknown>
  extends Omit<ToolOptions, 'parameters' | 'name' | 'description' | Companion> {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly parameters: Source;
  execute(
    toolCallId: string,
    params: ArgumentsOf<Source>,
    signal?: AbortSignal,
    onUpdate?: AgentToolUpdateCallback<Details>,
    context?: ToolExecutionContext,
  ): Promise<AgentToolResult<Details>>;
}

/**
 * Creates a tool from an agent tool. Its `execute` receives the call's id, the checked arguments, a signal, a
 * callback for partial results, and the call's context with the read-only history.
 *
 * @throws ToolDeclarationError (502) if the name is illegal or the schema cannot be read.
 *
 * @example
 * ```ts
 * const greet = agentTool({
 *   name: 'greet',
 *   label: 'Greeting',
 *   description: 'Greets somebody',
 *   parameters: Type.Object({ name: Type.String() }),
 *   execute: async (_id, { name }) => ({ content: [{ type: 'text', content: `Hello, ${name}!` }], details: {} }),
 * });
 * ```
 */
export function agentTool<Source extends SchemaSource, Details = unknown>(
  tool: AgentTool<Source, Details>,
): ToolDefinition {
  if (!isRecord(tool)) return toDefinition(tool as never, { by: 'agentTool', wrong: agentToolFaults(tool) });
  const { label, execute, annotations } = tool;
  const options = givenOptions(tool);
  const noBody = typeof execute === 'function' ? [] : [NO_BODY];
  const wrong = [...noBody, ...agentToolFaults(tool), ...unloadedSchemaFaults(tool)];
  const definition = toDefinition<Source>(
    {
      ...options,
      annotations: { title: label, ...annotations },
      execute: (params, context) =>
        execute.call(
          tool,
          context.callId,
          params,
          context.signal,
          (partial) => context.progress(partial),
          context,
        ),
    },
    { by: 'agentTool', wrong },
  );
  return Object.freeze({ ...definition, observesSignal: true, returnsContent: true });
}

const NO_BODY = {
  problem: 'it has no `execute`',
  fix: 'execute: async (toolCallId, params) => ({ content: […], details: … })',
};

/** The tools that were created from agent tools, one for each object. */
const adapted = new WeakMap<object, ToolDefinition>();

/**
 * Converts a value that was passed as a tool: an object in the form of {@link agentTool} becomes a tool; other values
 * are returned unchanged.
 *
 * @throws ToolDeclarationError (502) if the object has this form and contains a fault.
 */
export function adaptAgentTool(given: unknown): unknown {
  if (!isObject(given) || !('label' in given) || !('execute' in given)) return given;
  const { label, execute } = given;
  // It has a label, and its `execute` does not take the arguments first.
  const isBody = typeof execute === 'function' && execute.length !== 1;
  if (typeof label !== 'string' || !isBody || 'setContext' in given || 'setCallback' in given) return given;
  return cached<AgentTool, ToolDefinition>(adapted, given as AgentTool, agentTool);
}
