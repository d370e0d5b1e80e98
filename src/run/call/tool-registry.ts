import { type CallScope, SCOPE, type ToolPolicy } from '../../core/contract/call.js';
import type { ClassType, ServedAs } from '../../core/contract/declaration.js';
import { HOOKS, type Hooks } from '../../core/contract/hooks.js';
import { JOB_ENGINE, type JobEngine } from '../../core/contract/job-engine.js';
import { keepsJobs, type StoreWithJobs } from '../../core/contract/job-store.js';
import type { ToolSchema } from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import { RUN_STORE, type RunStore } from '../../core/contract/run-state.js';
import { TELEMETRY, type Telemetry } from '../../core/contract/telemetry.js';
import type { AsyncCallback, Tool, ToolDefinition } from '../../core/contract/tool.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import {
  type AuthorFault,
  checkArguments,
  checkOptions,
  InvalidOptionsError,
  invalidOptions,
  ToolDeclarationError,
  type UnplacedFault,
  undescribed,
  warnAuthor,
} from '../../core/errors/author-fault.js';
import { withinLimits } from '../../core/kernel/async.js';
import { cached } from '../../core/kernel/cached.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { isObject, isRecord } from '../../core/kernel/json.js';
import { Listeners } from '../../core/kernel/listeners.js';
import {
  areRight,
  BOOLEAN,
  either,
  FILLED_TEXT,
  FUNCTION,
  instanceOf,
  LIMIT,
  LOGGER,
  listOf,
  MILLISECONDS,
  optionTable,
  protecting,
  type RulesOf,
  TEXT,
  withMethods,
} from '../../core/kernel/options.js';
import { isClass, lineage, toolMethods } from '../../core/metadata/class-record.js';
import { behaviourFaults } from '../../core/metadata/tool-option-faults.js';
import { summarizeFaults } from '../../tools/checking/faults.js';
import {
  authorSchemaFaults,
  describeSchemaFault,
  schemaWarnings,
} from '../../tools/checking/schema-faults.js';
import { boundMethodOf, methodPlace } from '../../tools/discovery/bound-method.js';
import { adaptAgentTool, illegalName, isFinishedTool, TOOL_NAME } from '../../tools/discovery/define-tool.js';
import { objectFaults, textInputFaults } from '../../tools/discovery/tool-schemas.js';
import { isStandardSchema, unloadedParts } from '../../tools/schema/schema-source.js';
import { ToolIndex, type ToolQuery } from '../../tools/search/tool-index.js';
import { type AskedScope, allowedTools, bothPolicies } from './allow.js';
import { redactionIn } from './call-log.js';
import { type CheckedArguments, makeCall } from './call-pipeline.js';
import { prepareArguments } from './check-arguments.js';
import type {
  CallEnvironment,
  CallRequest,
  CallSource,
  CallWatcher,
  Invocation,
  InvokeOptions,
  Invoker,
  RecordedEnvironment,
  WatcherAdditions,
} from './invocation.js';
import { type JobDispatch, jobsOf } from './job-dispatch.js';
import { safeLog } from './log.js';
import { planOf, type ToolEntry } from './plan.js';
import { createRedaction, type Redaction } from './redact.js';
import { answerText, type DescribeError } from './result-text.js';
import { TaskQueue } from './task-queue.js';
import { toolToSchema } from './tool-to-schema.js';

/** Options of a `ToolRegistry`. */
export interface ToolRegistryOptions {
  readonly logger?: Logger;
  /** Records every call: `openTelemetry()`, from `toolwright/opentelemetry`. */
  readonly telemetry?: Telemetry;
  /** Whether arguments are logged, at level `debug`, with their secrets hidden; default: `true`. */
  readonly logArguments?: boolean;
  /** Further keys of arguments that are hidden in the log: `['customerNo']`. */
  readonly redact?: readonly string[];
  /** Milliseconds for tools without a `timeoutMs`; default: no limit; the loop has its own. */
  readonly toolTimeoutMs?: number;
  /** Returns the text that the model receives for an error of a tool; default: its message. Use it to hide details. */
  readonly describeError?: DescribeError;
  /** Decides about every call. If a run has another policy, both must allow the call. */
  readonly policy?: ToolPolicy;
  /** Hooks around every call, and every request of a run with this registry. They run before those of the run. */
  readonly hooks?: readonly Hooks[];
  /** `false`: arguments are used as they were sent, and types are not coerced; default: `true`. */
  readonly coerce?: boolean;
  /** The most characters of a result that the model receives; default: 100,000. The rest is stored in `details`. */
  readonly maxResultChars?: number;
  /** The queue of work that tools start; default: a queue without a limit. */
  readonly tasks?: TaskQueue;
  /** Runs the work of background tools outside this process. Requires a `store`. */
  readonly engine?: JobEngine;
  /** Stores started work, for example a `SqliteRunStore`. */
  readonly store?: RunStore | StoreWithJobs;
}

/** The rules for the options. */
export const REGISTRY_RULES: RulesOf<ToolRegistryOptions> = {
  logger: LOGGER,
  telemetry: TELEMETRY,
  logArguments: BOOLEAN,
  redact: protecting(listOf(TEXT, "an array of names: ['customerNo']")),
  toolTimeoutMs: MILLISECONDS,
  describeError: protecting(FUNCTION),
  policy: protecting(FUNCTION),
  hooks: HOOKS,
  coerce: BOOLEAN,
  maxResultChars: LIMIT,
  tasks: instanceOf(TaskQueue, 'new TaskQueue({ maxRunning: 4 })'),
  engine: JOB_ENGINE,
  store: either(RUN_STORE, { accepts: keepsJobs, fix: 'a store of jobs' }),
};

const REGISTRY_OPTIONS = optionTable<ToolRegistryOptions>('ToolRegistry', REGISTRY_RULES, {
  timeoutMs: 'toolTimeoutMs: …',
  tools: 'new ToolRegistry().register(...tools)',
});

/** The rule for watchers of a registry. */
const WATCHER = withMethods(['aroundCall'], 'createInspector(registry)');

const WATCHED: AuthorFault = {
  where: 'ToolRegistry.watch',
  problem: 'the registry already has an inspector',
  fix: 'one inspector per registry; call inspector.close() before you create another',
};

/** The answer to {@link ToolRegistry.call}. */
export interface ToolCallResult {
  readonly toolCallId: string;
  readonly name: string;
  readonly content: string;
  readonly isError: boolean;
}

/**
 * Tools by name: registers them, offers them to models and runs them. Methods that run tools never throw: failures
 * are results.
 *
 * @example
 * ```ts
 * const tools = new ToolRegistry();
 * tools.register(...discoverTools({ toolsets: [ShopTools] }), calculateTool);
 * const result = await tools.execute('find_orders', { customerId: 'cus_123' });
 * ```
 */
export class ToolRegistry {
  /** Milliseconds for tools without a `timeoutMs`, if set. */
  readonly toolTimeoutMs: number | undefined;
  /** The most characters of a result that a model receives, if set. */
  readonly maxResultChars: number | undefined;
  /** The queue of work that tools start, for runs without their own queue. */
  readonly tasks: TaskQueue;
  /** The logger of the registry and of runs with it, if set. */
  readonly logger: Logger | undefined;
  /** Records the calls of the registry, if set. */
  readonly telemetry: Telemetry | undefined;
  /** Hooks around its calls, and around the requests of runs with it. */
  readonly hooks: readonly Hooks[];
  readonly #options: ToolRegistryOptions;
  readonly #table: ToolTable;
  /** Its tools, and their definitions, until something is registered. */
  #tools: { readonly revision: number; readonly all: readonly ToolDefinition[] } | undefined;
  #definitions: { readonly revision: number; readonly schemas: readonly ToolSchema[] } | undefined;
  /** The environment of a call without its own settings. */
  readonly #environment: CallEnvironment;
  /** The same for calls with a record. */
  #recorded: RecordedEnvironment | undefined;
  #lastInvoker: { readonly options: InvokeOptions; readonly invoke: Invoker } | undefined;
  readonly #parts = new Map<ServedAs['kind'], ToolRegistry>();
  #calls = 0;

  constructor(options: ToolRegistryOptions = {}, table: ToolTable = new WritableToolTable()) {
    this.#options = options;
    this.#table = table;
    checkOptions(options, REGISTRY_OPTIONS);
    this.logger = options.logger;
    this.toolTimeoutMs = options.toolTimeoutMs;
    this.maxResultChars = options.maxResultChars;
    this.telemetry = options.telemetry;
    const { policy, tasks, redact, engine, store, hooks = [], ...others } = options;
    this.hooks = hooks;
    this.tasks = tasks ?? new TaskQueue();
    this.#environment = {
      ...others,
      ...(policy && { policies: [policy] }),
      ...(hooks.length > 0 && { hooks }),
      ...(redact && { redact: createRedaction(redact) }),
      ...(engine && { jobs: jobsOf({ engine, store }, 'ToolRegistry') }),
      find: (name) => this.#table.get(name),
      names: () => this.list(),
      kind: table.kind,
    };
  }

  /** The jobs of background tools, if a run has no engine. For the framework. */
  get jobs(): JobDispatch | undefined {
    return this.#environment.jobs;
  }

  /**
   * Adds tools; an existing tool with the same name is replaced in its place. A function creates a new tool for each
   * call.
   *
   * @throws ToolDeclarationError (502) naming every value that is not a tool, and every name that several of these
   * tools have; then nothing is registered.
   */
  register(...tools: readonly RegisteredTool[]): this {
    const table = this.#writable();
    const read = Array.from(new Set(tools), readTool);
    const faults = read.flatMap((item) => ('faults' in item ? item.faults : []));
    const all = [
      ...faults,
      ...sameNameFaults(read.flatMap((item) => ('name' in item ? item.entry.offered : []))),
    ];
    if (all.length > 0) throw new ToolDeclarationError(all);
    for (const item of read) {
      if ('faults' in item) continue;
      for (const warning of item.warnings) warnAuthor(warning, this.logger);
      const replaced = table.set(item.name, item.entry);
      if (!replaced || replaced.offered === item.entry.offered) continue;
      const warning = takenName(replaced.offered, item.entry.offered);
      if (warning !== undefined) warnAuthor(warning, this.logger);
      safeLog(this.logger).debug('Tool replaced', { tool: item.name });
    }
    return this;
  }

  /** Removes tools by name. */
  unregister(...names: readonly string[]): this {
    for (const name of names) this.#writable().delete(name);
    return this;
  }

  /** Copies the tools of another registry, which does not change; they replace tools with the same names. */
  merge(other: ToolRegistry): this {
    checkArguments({ of: 'ToolRegistry.merge', given: { other }, rules: { other: REGISTRY } });
    const table = this.#writable();
    for (const part of [other.#table, ...SERVED_KINDS.map((kind) => other.#table.part(kind))])
      for (const [name, entry] of [...part.entries()]) table.set(name, entry);
    return this;
  }

  /**
   * A view of this registry, by names or globs. Hidden tools can neither be listed nor called.
   *
   * @throws InvalidOptionsError (521), also for a list that is `undefined` and for an empty name.
   */
  view(filter: NameFilter = {}): ToolRegistry {
    checkOptions(filter, NAME_FILTER);
    return new ToolRegistry(this.#settings, tableView(this.#table, createNameFilter(filter)));
  }

  /** The same tools with the policies and hooks of another registry too, for calls within its calls. */
  within(outer: ToolRegistry): ToolRegistry {
    const { policy, hooks = [], redact = [], logArguments } = outer.#options;
    const addsNothing = !policy && hooks.length + redact.length === 0 && logArguments !== false;
    if (outer.#options === this.#options || addsNothing) return this;
    const own = this.#settings;
    const both = bothPolicies(policy, own.policy);
    const options = {
      ...own,
      ...(both && { policy: both }),
      hooks: [...new Set([...hooks, ...(own.hooks ?? [])])],
      redact: [...redact, ...(own.redact ?? [])],
      ...(logArguments === false && { logArguments }),
    };
    return new ToolRegistry(options, this.#table);
  }

  /** The prompts, resources or completions of this registry, as a registry. For the framework. */
  part(kind: ServedAs['kind']): ToolRegistry {
    return cached(this.#parts, kind, () => new ToolRegistry(this.#settings, this.#table.part(kind)));
  }

  /** Its settings for another table. */
  get #settings(): ToolRegistryOptions {
    return { ...this.#options, tasks: this.tasks };
  }

  /** Calls a listener for every change of the registered tools, once per tool; the returned function removes it. */
  onChange(listener: () => void): () => void {
    checkArguments({ of: 'ToolRegistry.onChange', given: { listener }, rules: { listener: FUNCTION } });
    return this.#table.root.onChange(listener);
  }

  /** The policies for every call, in addition to a run's own. */
  get policies(): readonly ToolPolicy[] {
    return this.#environment.policies ?? [];
  }

  /** The watcher of the calls, if there is one. */
  get watcher(): CallWatcher | undefined {
    return this.#table.root.watcher;
  }

  /**
   * Lets a watcher observe and hold the calls of this registry and of its views; the returned function ends this.
   *
   * @throws ToolDeclarationError (502) if there is already a watcher.
   */
  watch(watcher: CallWatcher): () => void {
    checkArguments({ of: 'ToolRegistry.watch', given: { watcher }, rules: { watcher: WATCHER } });
    if (this.#table.root.watcher !== undefined) throw new ToolDeclarationError([WATCHED]);
    this.#table.root.watcher = watcher;
    return () => {
      if (this.#table.root.watcher === watcher) this.#table.root.watcher = undefined;
    };
  }

  /** The tool for the next call; a function creates a new instance each time. */
  get(name: string): ToolDefinition | undefined {
    return this.#table.get(name)?.open();
  }

  /** The tool as it is offered, for its options; a function is not called again. */
  offered(name: string): ToolDefinition | undefined {
    const tool = this.#table.get(name)?.offered;
    return tool?.replacedBy === undefined ? tool : undefined;
  }

  tools(): ToolDefinition[] {
    const { revision } = this.#table.root;
    if (this.#tools?.revision !== revision)
      this.#tools = { revision, all: Array.from(this.#table.entries(), ([, { offered }]) => offered) };
    return this.#tools.all.slice();
  }

  list(): string[] {
    return Array.from(this.#table.entries(), ([name]) => name);
  }

  count(): number {
    return this.list().length;
  }

  /** One line per tool, for people. */
  getSummaries(): string[] {
    return this.tools().map(({ name, description }) => `- \`${name}\` - ${description ?? ''}`);
  }

  /** The definitions for a provider; the same array until something is registered. */
  toProviderDefs(): readonly ToolSchema[] {
    const { revision } = this.#table.root;
    if (this.#definitions?.revision !== revision) {
      this.#definitions = {
        revision,
        schemas: Object.freeze(this.tools().map((tool) => toolToSchema(tool))),
      };
    }
    return this.#definitions.schemas;
  }

  /** The same as {@link toProviderDefs}. */
  getDefinitions(): readonly ToolSchema[] {
    return this.toProviderDefs();
  }

  /**
   * The tools that match a query in natural language, best first; five by default. Tools that a view hides are not
   * found.
   */
  search(query: string, options: ToolQuery = {}): ToolDefinition[] {
    return this.#table.search(query, options).flatMap((name) => this.offered(name) ?? []);
  }

  /** The tools among these that the policies do not forbid in a scope. For the framework. */
  async allowed(names: readonly string[], origin: AskedScope): Promise<readonly string[]> {
    return allowedTools(this.#environment, names, origin);
  }

  /** Hides secrets in recorded data; `undefined` if arguments are not recorded at all. For the framework. */
  get redaction(): Redaction | undefined {
    return redactionIn(this.#environment);
  }

  /** Makes a call, as the loop and integrations do: a call that has to wait is suspended. Never throws. */
  async invoke(call: CallRequest, scope: CallScope = {}, options = NO_OPTIONS): Promise<Invocation> {
    const made = inScope(recordOrNone(call), scope);
    return this.invoker(options)(made.request, made.scope, options.attempt);
  }

  /**
   * Creates the function that makes the calls of a run, like {@link invoke}, with their shared settings prepared
   * once. The same frozen options return the same function.
   */
  invoker(options = NO_OPTIONS): Invoker {
    if (this.#lastInvoker?.options === options) return this.#lastInvoker.invoke;
    const { policy, hooks = [], tasks = this.tasks, ...others } = options;
    // A policy of both the run and its registry is evaluated once.
    const policies = policy && [...new Set([...(this.#environment.policies ?? []), policy])];
    const shared = {
      ...this.#environment,
      ...others,
      ...(policies && { policies }),
      ...(hooks.length > 0 && { hooks: [...this.hooks, ...hooks] }),
      ...(options.onAsyncResult && { tasks }),
      isRecorded: true as const,
      canSuspend: true,
    };
    const { root } = this.#table;
    const invoke: Invoker = (request, scope, attempt) =>
      makeWatched(root.watcher, shared, { request, scope, attempt });
    if (Object.isFrozen(options)) this.#lastInvoker = { options, invoke };
    return invoke;
  }

  /** Runs a tool; `args` is an object or raw JSON text. Never throws. */
  execute(name: string, args?: unknown): Promise<ToolResult> {
    return this.#answer(this.#environment, { request: this.#numbered(name, args), scope: {} });
  }

  /** Runs a tool in a scope; with a listener, it may answer now and complete later. */
  executeWithContext(
    name: string,
    args: unknown,
    scope: CallScope = {},
    onAsyncResult?: AsyncCallback,
  ): Promise<ToolResult> {
    const { callId: id } = scope ?? {};
    const call = id === undefined ? this.#numbered(name, args) : { id, name, arguments: args };
    const environment =
      typeof onAsyncResult === 'function'
        ? { ...this.#environment, onAsyncResult, tasks: this.tasks }
        : this.#environment;
    return this.#answer(environment, inScope(call, scope));
  }

  /** Runs a call and returns its answer as text. Never throws. */
  async call(
    given: Partial<CallRequest> & Pick<CallRequest, 'name'>,
    scope: CallScope = {},
  ): Promise<ToolCallResult> {
    const {
      name,
      arguments: args,
      id = scope?.callId ?? this.#numbered(name, args).id,
    } = recordOrNone(given);
    this.#recorded ??= { ...this.#environment, isRecorded: true };
    const call = inScope({ id, name, arguments: args }, scope);
    const { record } = await makeWatched(this.#table.root.watcher, this.#recorded, call);
    return { toolCallId: id, name, content: answerText(record), isError: record.result.isError };
  }

  #answer(environment: CallEnvironment, call: MadeCall): Promise<ToolResult> {
    const { watcher } = this.#table.root;
    if (watcher === undefined) return Promise.resolve(makeCall(environment, call.request, call));
    const made = makeWatched(watcher, { ...environment, isRecorded: true }, call);
    return Promise.resolve(made).then(({ result }) => result);
  }

  /**
   * Reads and checks the arguments of a call without making it. Policies are not evaluated. Never throws. For the
   * arguments of a pending call, set `transformed: true`, so that `@Transform` of class-transformer is not applied
   * again.
   *
   * @example
   * ```ts
   * const checked = await tools.check('find_orders', { customerId: 'cus_123' });
   * console.log(checked.ok ? checked.arguments : checked.problem);
   * ```
   */
  async check(
    name: string,
    args: unknown,
    options: { readonly transformed?: boolean } = {},
  ): Promise<CheckedArguments> {
    const { coerce, toolTimeoutMs } = this.#environment;
    try {
      const found = this.#table.get(name);
      if (found === undefined) return { ok: false, problem: `there is no tool '${name}'` };
      const tool = found.open();
      const isTransformed = options.transformed === true;
      const request = { id: '', name, arguments: args, isTransformed };
      const checking = prepareArguments(tool, planOf(tool, coerce), request);
      const timeoutMs = tool.timeoutMs ?? toolTimeoutMs ?? CHECK_MS;
      const ready = await withinLimits(checking, { signal: undefined, timeoutMs });
      if (!ready.ok) return { ok: false, problem: summarizeFaults(ready.faults) };
      return { ok: true, arguments: ready.value, removed: ready.removed };
    } catch (error) {
      return { ok: false, problem: errorMessage(error) };
    }
  }

  #numbered(name: string, args: unknown): NumberedCall {
    this.#calls += 1;
    return new NumberedCall(this.#calls, name, args);
  }

  #writable(): WritableToolTable {
    const { root } = this.#table;
    if (this.#table === root) return root;
    throw new ToolDeclarationError([
      {
        where: 'ToolRegistry.view',
        problem: 'a view cannot be changed',
        fix: 'registry.register(tool) on the registry of the view',
      },
    ]);
  }
}

const REGISTRY = instanceOf(ToolRegistry, 'a ToolRegistry');

/** Tools as a registry, unless they are one. */
export function registryOf(tools: ToolRegistry | readonly RegisteredTool[] | undefined): ToolRegistry {
  return tools instanceof ToolRegistry ? tools : new ToolRegistry().register(...(tools ?? []));
}

/** Untyped callers may pass any value; then there is no such tool. */
function recordOrNone<Call>(call: Call): Call {
  return isRecord(call) ? call : ({} as Call);
}

/** Always the same object, so that a registry creates one invoker for all callers without options. */
const NO_OPTIONS: InvokeOptions = Object.freeze({});

/** A call without an id. Its number is formatted only if it is read. */
class NumberedCall implements CallRequest {
  readonly arguments: unknown;

  constructor(
    readonly number: number,
    readonly name: string,
    args: unknown,
  ) {
    this.arguments = args;
  }

  get id(): string {
    return `call_${this.number}`;
  }
}

/** A call to make, with its checked scope. */
interface MadeCall extends CallSource {
  readonly request: CallRequest;
}

/** Checks the scope of a call. Runs check theirs at their start, and throw. */
function inScope(request: CallRequest, scope: CallScope | null): MadeCall {
  const given = scope ?? {};
  if (areRight(given, SCOPE)) return { request, scope: given };
  const { id, name, arguments: args } = request;
  const scopeError = new InvalidOptionsError(invalidOptions(given, SCOPE));
  return { request: { id, name, arguments: args, scopeError }, scope: {} };
}

/** Makes a call, through the watcher of its registry if there is one. */
function makeWatched(
  watcher: CallWatcher | undefined,
  environment: RecordedEnvironment,
  { request, scope, attempt }: MadeCall,
): Invocation | Promise<Invocation> {
  if (watcher === undefined) return makeCall(environment, request, { scope, attempt });
  const make = ({ policy, onStep }: WatcherAdditions = {}): Invocation | Promise<Invocation> => {
    const { policies = [] } = environment;
    const added = { ...(policy && { policies: [...policies, policy] }), ...(onStep && { onStep }) };
    return makeCall({ ...environment, ...added }, request, { scope, attempt });
  };
  return new Promise((resolve) => resolve(watcher.aroundCall({ request, scope, attempt, make })));
}

/** For class rules that never settle. */
const CHECK_MS = 120_000;

/** A tool to register, or a function that creates a new tool for each call. */
export type RegisteredTool = Tool | ToolDefinition | (() => Tool | ToolDefinition);

/** The kinds of registered objects that are not tools. */
export const SERVED_KINDS = [
  'prompt',
  'resource',
  'completion',
] as const satisfies readonly ServedAs['kind'][];

/** Names and their tools, in order of registration. */
interface ToolTable {
  /** The writable table that all views of it share. */
  readonly root: WritableToolTable;
  /** What it contains, if these are not tools. */
  readonly kind?: ServedAs['kind'];
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
  readonly #listeners = new Listeners<void>();
  /** Observes the calls of everyone who shares the table. */
  watcher: CallWatcher | undefined;
  /** Incremented by every change. */
  revision = 0;
  /** Absent until the first search. */
  #index: ToolIndex | undefined;

  get(name: string): ToolEntry | undefined {
    return this.#entries.get(name);
  }

  *entries(): Iterable<readonly [string, ToolEntry]> {
    for (const entry of this.#entries) if (entry[1].offered.replacedBy === undefined) yield entry;
  }

  part(kind: ServedAs['kind']): ToolTable {
    const entries = this.#parts.get(kind) as Map<string, ToolEntry>;
    const part: ToolTable = {
      root: this,
      kind,
      get: (name) => entries.get(name),
      entries: () => entries,
      part: () => part,
      search: () => [],
    };
    return part;
  }

  /** Returns the entry that it replaces. */
  set(name: string, entry: ToolEntry): ToolEntry | undefined {
    const { served, replacedBy } = entry.offered;
    const entries = served ? this.#parts.get(served.kind) : this.#entries;
    const replaced = entries?.get(name);
    entries?.set(name, entry);
    if (replacedBy !== undefined) this.#index?.remove(name);
    else if (!served) this.#index?.add(entry.offered);
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
    return this.#listeners.add(listener);
  }

  search(query: string, options: ToolQuery): readonly string[] {
    if (this.#index === undefined) {
      this.#index = new ToolIndex();
      for (const [, { offered }] of this.entries()) this.#index.add(offered);
    }
    return this.#index.search(query, options);
  }

  #changed(): void {
    this.revision += 1;
    // A listener that throws must not prevent the other registrations.
    this.#listeners.notify(undefined, () => {});
  }
}

/** A live, filtered view of another table. Hidden tools can neither be listed nor called. */
function tableView(source: ToolTable, isVisible: (name: string) => boolean): ToolTable {
  return {
    root: source.root,
    kind: source.kind,
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
  if (isFactory && isClass(registered)) {
    const { name } = registered;
    const isToolset = toolMethods(registered).length > 0;
    const fix = isToolset ? discovered(name) : `register(new ${name}()), or @Tool before its methods`;
    return { faults: [registerFault(name || 'a class', 'it is a class, not a tool', fix)] };
  }
  let offered: unknown = registered;
  try {
    if (isFactory) offered = registered();
  } catch (error) {
    const problem = `a function must return a tool, and it threw: ${errorMessage(error)}`;
    return { faults: [registerFault(registered.name || 'a function', problem, '() => tool')] };
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
  const { name, description, parameters, output } = tool;
  const warnings: AuthorFault[] = [];
  if (!Object.isFrozen(tool)) {
    const where = placeOf(name);
    const fix = 'a `description` of what it does, and when to use it';
    if (!description?.trim()) warnings.push(undescribed(where, fix));
    for (const [what, schema] of Object.entries({ parameters, output }))
      for (const warning of schema ? schemaWarnings(schema, 'author') : [])
        warnings.push({ where, ...describeSchemaFault(warning, what) });
  }
  return { name, entry: { open, offered: tool }, warnings };
}

function discovered(toolset: string): string {
  return `register(...discoverTools({ toolsets: [${toolset}] }))`;
}

function registerFault(what: string, problem: string, fix: string): AuthorFault {
  return { where: `register(${what})`, problem, fix };
}

function faultsOf(tool: unknown): readonly AuthorFault[] {
  const mistaken = mistakenFor(tool);
  if (mistaken !== undefined) return [mistaken];
  const { name, description, parameters, execute, input } = tool as Partial<ToolDefinition>;
  const faults: UnplacedFault[] = [];
  const must = (holds: boolean, problem: string, fix: string) => holds || faults.push({ problem, fix });
  if (typeof name === 'string' && !TOOL_NAME.test(name)) faults.push(illegalName(name));
  must(typeof name === 'string', 'it has no name', 'a `name` that is a string');
  must(
    description === undefined || typeof description === 'string',
    'its description is not a string',
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
function sameNameFaults(tools: readonly ToolDefinition[]): readonly AuthorFault[] {
  const groups = Map.groupBy(tools, ({ name, served }) => `${served?.kind ?? ''} ${name}`.trim());
  return [...groups].flatMap(([name, same]) => {
    if (same.length === 1) return [];
    const methods = same.flatMap((tool) => boundMethodOf(tool) ?? []).map(methodPlace);
    const owners = methods.length > 0 ? ` (${methods.join(', ')})` : '';
    return {
      where: placeOf(name),
      problem: `several tools that are given together have this name${owners}`,
      fix: 'a different name for each; or register one of them later, which replaces the other',
    };
  });
}

/** Two classes rarely have a tool of the same name on purpose, unless one is a stand-in that extends the other. */
function takenName(replaced: ToolDefinition, by: ToolDefinition): AuthorFault | undefined {
  const [before, after] = [boundMethodOf(replaced), boundMethodOf(by)];
  if (before === undefined || after === undefined) return undefined;
  if (lineage(after.class).includes(before.class) || before.class.name === after.class.name) return undefined;
  return {
    where: placeOf(by.name),
    problem: `${methodPlace(after)} replaces ${methodPlace(before)}, which has the same name`,
    fix: '@Tool({ name }) on one of them, or @Toolset({ prefix })',
  };
}

const PARAMETERS = '`parameters` as a JSON Schema object';

function malformedSchemas({ parameters, output }: Partial<ToolDefinition>): readonly UnplacedFault[] {
  return Object.entries({ parameters, output }).flatMap(
    ([what, schema]): UnplacedFault | readonly UnplacedFault[] => {
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
    },
  );
}

/** Frequent mistakes instead of a tool. */
function mistakenFor(tool: unknown): AuthorFault | undefined {
  if (Array.isArray(tool)) return registerFault('[…]', 'it is a list of tools', 'register(...tools)');
  if (!isObject(tool))
    return registerFault(
      String(tool),
      'it is not a tool',
      'an object with name, description, parameters and execute',
    );
  if ('execute' in tool) return undefined;
  if ('then' in tool) return registerFault('a promise', 'it is a promise', 'register(await …)');
  if ('function' in tool)
    return registerFault('{ type, function }', 'it is a definition for a provider', 'the tool itself');
  if (toolMethods(tool.constructor as ClassType).length === 0) return undefined;
  const { name } = tool.constructor;
  return registerFault(`new ${name}()`, 'it is an instance of a toolset class', discovered(name));
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
  return (name) => names.has(name) || expressions.some((expression) => expression.test(name));
}
