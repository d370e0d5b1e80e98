import type { ClassType, ServedAs } from '../../core/contract/declaration.js';
import type { Tool, ToolDefinition } from '../../core/contract/tool.js';
import { type AuthorFault, ToolDeclarationError, undescribed } from '../../core/errors/author-fault.js';
import { callListener } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { isRecord } from '../../core/kernel/json.js';
import { FILLED_TEXT, listOf, optionTable, protecting, type RulesOf } from '../../core/kernel/options.js';
import { toolMethods } from '../../core/metadata/class-record.js';
import { behaviourFaults } from '../../core/metadata/tool-option-faults.js';
import {
  authorSchemaFaults,
  describeSchemaFault,
  schemaWarnings,
} from '../../tools/checking/schema-faults.js';
import { adaptAgentTool, illegalName, isFinishedTool, TOOL_NAME } from '../../tools/discovery/define-tool.js';
import { objectFaults, textInputFaults } from '../../tools/discovery/tool-schemas.js';
import { isStandardSchema, unloadedParts } from '../../tools/schema/schema-source.js';
import { ToolIndex, type ToolQuery } from '../../tools/search/tool-index.js';
import type { CallWatcher } from './invocation.js';
import type { ToolEntry } from './plan.js';

/** A tool to register, or a function that creates a new tool for each call. */
export type RegisteredTool = Tool | ToolDefinition | (() => Tool | ToolDefinition);

/** The kinds of registered objects that are not tools. */
export const SERVED_KINDS = [
  'prompt',
  'resource',
  'completion',
] as const satisfies readonly ServedAs['kind'][];

/** Names and their tools, in order of registration. */
export interface ToolTable {
  /** The writable table that all views of it share. */
  readonly root: WritableToolTable;
  get(name: string): ToolEntry | undefined;
  entries(): Iterable<readonly [string, ToolEntry]>;
  /** The registered objects of a kind that are not tools, for MCP clients. */
  part(kind: ServedAs['kind']): ToolTable;
  /** Names of the tools that match a query, best first. */
  search(query: string, options: ToolQuery): readonly string[];
}

/** A writable table. It is a `Map`, so that a model's `constructor` is not found. */
export class WritableToolTable implements ToolTable {
  readonly root = this;
  readonly #entries = new Map<string, ToolEntry>();
  readonly #parts = new Map(SERVED_KINDS.map((kind) => [kind, new Map<string, ToolEntry>()]));
  readonly #listeners = new Set<() => void>();
  /** Observes the calls of everyone who shares the table. */
  watcher: CallWatcher | undefined;
  /** Incremented by every change. */
  revision = 0;
  /** Absent until the first search. */
  #index: ToolIndex | undefined;

  get(name: string): ToolEntry | undefined {
    return this.#entries.get(name);
  }

  entries(): Iterable<readonly [string, ToolEntry]> {
    return this.#entries;
  }

  part(kind: ServedAs['kind']): ToolTable {
    const entries = this.#parts.get(kind) as Map<string, ToolEntry>;
    const part: ToolTable = {
      root: this,
      get: (name) => entries.get(name),
      entries: () => entries,
      part: () => part,
      search: () => [],
    };
    return part;
  }

  /** Returns the entry that it replaces. */
  set(name: string, entry: ToolEntry): ToolEntry | undefined {
    const { served } = entry.offered;
    const entries = served ? this.#parts.get(served.kind) : this.#entries;
    const replaced = entries?.get(name);
    entries?.set(name, entry);
    if (!served) this.#index?.add(entry.offered);
    this.#changed();
    return replaced;
  }

  delete(name: string): void {
    const wasTool = this.#entries.delete(name);
    if (wasTool) this.#index?.remove(name);
    const wasServed = Array.from(this.#parts.values(), (part) => part.delete(name));
    if (wasTool || wasServed.includes(true)) this.#changed();
  }

  /**
   * Notifies a listener of every change, including changes of tools that views hide. The returned function removes
   * it.
   */
  onChange(listener: () => void): () => void {
    // The same function may be added twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  search(query: string, options: ToolQuery): readonly string[] {
    if (this.#index === undefined) {
      this.#index = new ToolIndex();
      for (const { offered } of this.#entries.values()) this.#index.add(offered);
    }
    return this.#index.search(query, options);
  }

  #changed(): void {
    this.revision += 1;
    // A listener that throws must not prevent the other registrations.
    for (const listener of this.#listeners) callListener(listener, () => {});
  }
}

/** A live, filtered view of another table. Hidden tools can neither be listed nor called. */
export function tableView(source: ToolTable, isVisible: (name: string) => boolean): ToolTable {
  return {
    root: source.root,
    get: (name) => (isVisible(name) ? source.get(name) : undefined),
    entries: () => [...source.entries()].filter(([name]) => isVisible(name)),
    part: (kind) => tableView(source.part(kind), isVisible),
    search: (query, { accepts, ...options }) =>
      source.search(query, { ...options, accepts: (name) => isVisible(name) && accepts?.(name) !== false }),
  };
}

/** A value to register, or why it cannot be registered. */
type ReadTool =
  | { readonly name: string; readonly entry: ToolEntry; readonly warnings: readonly AuthorFault[] }
  | { readonly faults: readonly AuthorFault[] };

/** Checks a value to register. A function is called once to get the tool that is offered. */
export function readTool(registered: RegisteredTool): ReadTool {
  if (isFinishedTool(registered)) {
    const entry = { open: () => registered, offered: registered, fixed: registered };
    return { name: registered.name, entry, warnings: [] };
  }
  const isFactory = typeof registered === 'function';
  let offered: unknown = registered;
  try {
    if (isFactory) offered = registered();
  } catch (error) {
    return { faults: [factoryFault(registered.name, error)] };
  }
  try {
    offered = adaptAgentTool(offered);
  } catch (error) {
    if (error instanceof ToolDeclarationError) return { faults: error.faults };
    throw error;
  }
  const faults = faultsOf(offered);
  if (faults.length > 0) return { faults };
  const tool = offered as ToolDefinition;
  const open = isFactory ? () => adaptAgentTool(registered()) as ToolDefinition : () => tool;
  // Frozen tools come from discovery, `defineTool` or an integration, which already warned.
  const warnings = Object.isFrozen(tool) ? [] : warningsFor(tool);
  return { name: tool.name, entry: { open, offered: tool }, warnings };
}

function warningsFor({ name, description, parameters, output }: ToolDefinition): readonly AuthorFault[] {
  const where = placeOf(name);
  const warnings = Object.entries({ parameters, output }).flatMap(([what, schema]) =>
    schema ? schemaWarnings(schema, 'author').map((warning) => describeSchemaFault(warning, what)) : [],
  );
  return [
    ...(description?.trim() ? [] : [undescribed(where, 'a `description` that says what it does, and when')]),
    ...warnings.map((warning) => ({ where, ...warning })),
  ];
}

function factoryFault(name: string, error: unknown): AuthorFault {
  return {
    where: `register(${name || 'a function'})`,
    problem: `as a function it must return a tool, and it threw: ${errorMessage(error)}`,
    causes: ['it is a class; a toolset class is discovered'],
    fix: '`() => tool`, or `...discoverTools({ toolsets: [TheClass] })`',
  };
}

type Fault = Omit<AuthorFault, 'where'>;

function faultsOf(tool: unknown): readonly AuthorFault[] {
  const mistaken = mistakenFor(tool);
  if (mistaken !== undefined) return [mistaken];
  const { name, description, parameters, execute, input } = tool as Partial<ToolDefinition>;
  const faults: Fault[] = [];
  const must = (holds: boolean, problem: string, fix: string) => holds || faults.push({ problem, fix });
  if (typeof name === 'string' && !TOOL_NAME.test(name)) faults.push(illegalName(name));
  must(typeof name === 'string', 'it has no name', 'a `name` that is a string');
  must(
    description === undefined || typeof description === 'string',
    'its description is not text',
    'a `description` that is a string',
  );
  must(parameters !== undefined && parameters !== null, 'it has no parameters', PARAMETERS);
  must(typeof execute === 'function', 'it cannot be executed', 'an `execute(args, context)` method');
  faults.push(...behaviourFaults(tool as object), ...malformedSchemas(tool as Partial<ToolDefinition>));
  if (input === 'text' && isRecord(parameters)) faults.push(...textInputFaults(parameters));
  return faults.map((fault) => ({ where: placeOf(name), ...fault }));
}

function placeOf(name: unknown): string {
  return `register(${typeof name === 'string' ? JSON.stringify(name) : 'a tool without a name'})`;
}

/** If two tools with the same name are registered together, it is unclear which is meant. */
export function sameNameFaults(names: readonly string[]): readonly AuthorFault[] {
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  return Array.from(new Set(twice), (name) => ({
    where: placeOf(name),
    problem: 'several tools that are given together have this name',
    fix: 'a name of its own for each; or register one of them later, which replaces the other',
  }));
}

const PARAMETERS = '`parameters` as a JSON Schema object';

function malformedSchemas({ parameters, output }: Partial<ToolDefinition>): readonly Fault[] {
  return Object.entries({ parameters, output }).flatMap(([what, schema]): Fault | readonly Fault[] => {
    if (schema === undefined || schema === null) return [];
    // The members of a library's schema would be read as keywords.
    if (isStandardSchema(schema))
      return {
        problem: `its \`${what}\` are a schema of ${schema['~standard'].vendor}, which only defineTool writes as JSON Schema`,
        fix: 'register(defineTool({ name, description, parameters, execute }))',
      };
    if (!isRecord(schema))
      return { problem: `its \`${what}\` are not a JSON Schema object`, fix: PARAMETERS };
    const unloaded = unloadedParts(schema);
    if (unloaded !== undefined) return { ...unloaded, problem: `its \`${what}\` ${unloaded.problem}` };
    const faults = authorSchemaFaults(schema).map((fault) => describeSchemaFault(fault, what));
    return faults.length === 0 && what === 'parameters' ? objectFaults(schema) : faults;
  });
}

/** Frequent mistakes instead of a tool. */
function mistakenFor(tool: unknown): AuthorFault | undefined {
  if (Array.isArray(tool))
    return { where: 'register([…])', problem: 'it is a list of tools', fix: 'register(...tools)' };
  if (typeof tool !== 'object' || tool === null)
    return {
      where: `register(${String(tool)})`,
      problem: 'it is not a tool',
      fix: 'an object with name, description, parameters and execute',
    };
  if ('execute' in tool) return undefined;
  if ('function' in tool)
    return {
      where: 'register({ type, function })',
      problem: 'it is a definition for a provider',
      fix: 'the tool itself',
    };
  if (toolMethods(tool.constructor as ClassType).length === 0) return undefined;
  const { name } = tool.constructor;
  return {
    where: `register(new ${name}())`,
    problem: 'it is an instance of a toolset class',
    fix: `register(...discoverTools({ toolsets: [${name}] }))`,
  };
}

/** The tools of a view: names, or globs with `*`. `deny` wins over `allow`. */
export interface NameFilter {
  /** Names or patterns (`billing_*`) of the tools that are visible. Default: all. */
  readonly allow?: readonly string[];
  /** Tools that are hidden, even if they are allowed. */
  readonly deny?: readonly string[];
}

const NAMES = listOf({ ...FILLED_TEXT, fix: "'billing_*'" }, "['billing_*', …]");

/** An undefined list must not show all tools. */
export const NAME_FILTER_RULES: RulesOf<NameFilter> = { allow: protecting(NAMES), deny: protecting(NAMES) };

export const NAME_FILTER = optionTable<NameFilter>('a view', NAME_FILTER_RULES);

/** Whether a filter allows a name; without `allow`, all names that are not denied. */
export function createNameFilter({ allow, deny = [] }: NameFilter): (name: string) => boolean {
  const isAllowed = allow === undefined ? () => true : matcher(allow);
  const isDenied = matcher(deny);
  return (name) => isAllowed(name) && !isDenied(name);
}

function matcher(patterns: readonly string[]): (name: string) => boolean {
  const names = new Set(patterns);
  const expressions = patterns
    .filter((pattern) => pattern.includes('*'))
    .map((glob) => new RegExp(`^${glob.split('*').map(escapePattern).join('.*')}$`));
  // Most views list names, and every call is looked up.
  if (expressions.length === 0) return (name) => names.has(name);
  return (name) => names.has(name) || expressions.some((expression) => expression.test(name));
}
