import type { ToolOptions } from '../contract/declaration.js';
import type { JsonObject, JsonSchema, SchemaSource, ValueOf } from '../contract/json-schema.js';
import type { ToolDefinition } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import { type AuthorFault, ToolDeclarationError, undescribed, warnAuthor } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { isRecord } from '../kernel/json.js';
import type { OptionFault } from '../kernel/options.js';
import {
  definedToolFaults,
  givenOptions,
  unloadedExecuteFaults,
  unloadedSchemaFaults,
} from '../metadata/tool-option-faults.js';
import { freezeTool, ignoresContext, illegalName, TOOL_NAME } from './freeze-tool.js';
import { buildToolSchemas } from './tool-schemas.js';

/**
 * The type of the arguments that a schema stands for: a Standard Schema's output, TypeBox's `static`, and
 * for plain JSON Schema an object of unknown values.
 */
export type ArgumentsOf<Source> = ValueOf<Source, JsonObject>;

/** Options of {@link defineTool}. */
export interface DefineToolOptions<Source extends SchemaSource>
  extends Omit<ToolOptions, 'parameters' | 'name' | 'reconcile' | 'compensate' | 'touches' | 'preview'>,
    Pick<ToolDefinition, 'reconcile' | 'compensate' | 'touches' | 'preview'> {
  readonly name: string;
  /** Default: no arguments. */
  readonly parameters?: Source;
  /** Without it, the tool is executed by the client. */
  execute?(args: ArgumentsOf<Source>, context: ToolContext): unknown;
}

/**
 * A tool without a class: the same definition that `@Tool` leads to. The arguments of `execute` are typed
 * by the schema.
 *
 * @throws ToolDeclarationError (502) when the name is illegal or the schema cannot be read.
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

/** Who makes the tool, and what it has found wrong with the options. */
interface Maker {
  readonly by: string;
  readonly wrong: readonly Omit<AuthorFault, 'where'>[];
}

/** Makes the tool, or throws all that is wrong with it. */
export function toDefinition<Source extends SchemaSource>(
  options: DefineToolOptions<Source>,
  { by, wrong }: Maker,
): ToolDefinition {
  // From JavaScript, or of files that import each other in a circle.
  if (!isRecord(options))
    throw new ToolDeclarationError(wrong.map((fault) => ({ where: `${by}(${options})`, ...fault })));
  const { name, execute, ...others } = givenOptions(options);
  const schemas = buildToolSchemas(others, { properties: [] });
  const faults = [...nameFaults(name), ...wrong, ...(schemas.ok ? [] : schemas.faults)];
  const where = `${by}(${JSON.stringify(name)})`;
  if (faults.length > 0 || !schemas.ok)
    throw new ToolDeclarationError(faults.map((fault) => ({ where, ...fault })));
  if (!options.description?.trim())
    warnAuthor(undescribed(where, 'a `description` that says what it does, and when'));
  const { parameters, output, hydrate, doubts } = schemas;
  for (const doubt of doubts) warnAuthor({ where, ...doubt });
  const behaviour = execute ? others : { ...others, execution: 'client' as const };
  return freezeTool(behaviour, {
    name,
    parameters,
    output,
    hydrate,
    reconcile: options.reconcile,
    compensate: options.compensate,
    touches: options.touches,
    preview: options.preview,
    ignoresContext: (execute && ignoresContext(execute)) || undefined,
    execute: execute ? ownExecute(options, execute) : refuseClientTool(name),
  });
}

function nameFaults(name: unknown): readonly Pick<OptionFault, 'problem' | 'fix'>[] {
  if (typeof name !== 'string') return [{ problem: 'it has no name', fix: 'a `name` that is a string' }];
  return TOOL_NAME.test(name) ? [] : [illegalName(name)];
}

/** An instance of a class may look at itself. */
function ownExecute(options: object, execute: ToolDefinition['execute']): ToolDefinition['execute'] {
  return Object.getPrototypeOf(options) === Object.prototype ? execute : execute.bind(options);
}

function refuseClientTool(name: string): () => never {
  return () => {
    throw new ToolwrightError(
      'NotExecutableHere',
      `The tool '${name}' is executed by the client; it cannot run here.`,
    );
  };
}
