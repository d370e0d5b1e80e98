import type { CallRecord } from '../contract/call-record.js';
import type { CallScope } from '../contract/call-scope.js';
import type { Logger } from '../contract/logger.js';
import type { AsyncCallback, Tool } from '../contract/tool.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolPolicy } from '../contract/tool-policy.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { ToolSchema } from '../contract/tool-schema.js';
import { ToolDeclarationError, warnAuthor } from '../errors/author-fault.js';
import { checkArguments, checkOptions } from '../errors/invalid-options.js';
import { callTool, invocationOf } from '../invocation/call-tool.js';
import type { CallEnvironment, CallRequest, Invocation } from '../invocation/invocation.js';
import { NumberedCall } from '../invocation/numbered-call.js';
import { createRedaction } from '../invocation/redact.js';
import { SafeLog } from '../invocation/safe-log.js';
import { TaskQueue } from '../invocation/task-queue.js';
import { isRecord } from '../kernel/is-record.js';
import { FUNCTION, instanceOf } from '../kernel/option-rules.js';
import { createNameFilter, NAME_FILTER, type NameFilter } from './name-filter.js';
import { readTool } from './read-tool.js';
import { answerText } from './result-text.js';
import { REGISTRY_OPTIONS, type ToolRegistryOptions } from './tool-registry-options.js';
import { type RegisteredTool, type ToolTable, ToolTableView, WritableToolTable } from './tool-table.js';
import { toolToSchema } from './tool-to-schema.js';

/** What the loop adds to a call; wins over the registry's own options. */
export interface InvokeOptions extends Pick<CallEnvironment, 'judgeCompletion'> {
  readonly logger?: Logger;
  readonly toolTimeoutMs?: number;
  readonly attempt?: number;
  readonly onAsyncResult?: AsyncCallback;
  readonly tasks?: TaskQueue;
  readonly policy?: ToolPolicy;
  readonly maxResultChars?: number;
}

/** Makes a call; synchronous where its tool is. Never throws or rejects. */
export type Invoker = (
  call: CallRequest,
  scope: CallScope,
  attempt?: number,
) => Invocation | Promise<Invocation>;

/** The answer to {@link ToolRegistry.call}. */
export interface ToolCallResult {
  readonly toolCallId: string;
  readonly name: string;
  readonly content: string;
  readonly isError: boolean;
}

/**
 * Tools by name: registers them, offers them to models and runs them. No method
 * that runs a tool throws: what goes wrong is a result.
 *
 * @example
 * ```ts
 * const tools = new ToolRegistry();
 * tools.register(...discoverTools({ toolsets: [ShopTools] }), calculateTool);
 * const result = await tools.execute('find_orders', { customerId: 'cus_123' });
 * ```
 */
export class ToolRegistry {
  /** Milliseconds for tools that set no `timeoutMs`, where the registry was given any. */
  readonly toolTimeoutMs: number | undefined;
  /** What the work that tools start goes through, where a run brings no queue of its own. */
  readonly tasks: TaskQueue;
  readonly #options: ToolRegistryOptions;
  readonly #log: SafeLog;
  readonly #table: ToolTable;
  #definitions: { readonly revision: number; readonly schemas: readonly ToolSchema[] } | undefined;
  /** What surrounds a call that brings nothing of its own. */
  readonly #environment: CallEnvironment;
  #calls = 0;

  constructor(options: ToolRegistryOptions = {}, table: ToolTable = new WritableToolTable()) {
    this.#options = options;
    this.#table = table;
    checkOptions(options, REGISTRY_OPTIONS);
    this.#log = new SafeLog(options.logger);
    this.toolTimeoutMs = options.toolTimeoutMs;
    const { policy, tasks, redact, ...others } = options;
    this.tasks = tasks ?? new TaskQueue();
    this.#environment = {
      ...others,
      ...(policy ? { policies: [policy] } : {}),
      ...(redact ? { redact: createRedaction(redact) } : {}),
      scope: {},
      find: (name) => this.get(name),
      names: () => this.list(),
    };
  }

  /**
   * Adds tools; one of the same name is replaced in its place. A function makes a new tool for each call.
   *
   * @throws ToolDeclarationError (502) naming every tool that is none; then nothing is registered.
   */
  register(...tools: readonly RegisteredTool[]): this {
    const table = this.#writable();
    const read = tools.map(readTool);
    const faults = read.flatMap((one) => ('faults' in one ? one.faults : []));
    if (faults.length > 0) throw new ToolDeclarationError(faults);
    for (const one of read) {
      if ('faults' in one) continue;
      for (const doubt of one.doubts ?? []) warnAuthor(doubt, this.#options.logger);
      const known = table.get(one.name);
      if (known !== undefined && known.offered !== one.entry.offered)
        this.#log.debug('Tool replaced', { tool: one.name });
      table.set(one.name, one.entry);
    }
    return this;
  }

  /** Takes tools away by their names. */
  unregister(...names: readonly string[]): this {
    for (const name of names) this.#writable().delete(name);
    return this;
  }

  /** Copies the other's tools in; the other's win, and the other stays as it is. */
  merge(other: ToolRegistry): this {
    checkArguments({ of: 'ToolRegistry.merge', given: { other }, rules: { other: REGISTRY } });
    const table = this.#writable();
    for (const [name, entry] of [...other.#table.entries()]) table.set(name, entry);
    return this;
  }

  /**
   * A part of this registry, by names or globs: what it hides can neither be seen nor called.
   *
   * @throws InvalidOptionsError (521), also for a list that is `undefined` and for an empty name.
   */
  view(filter: NameFilter = {}): ToolRegistry {
    checkOptions(filter, NAME_FILTER);
    const { tasks } = this;
    return new ToolRegistry(
      { ...this.#options, tasks },
      new ToolTableView(this.#table, createNameFilter(filter)),
    );
  }

  /** Tells a listener of every change of what is registered, once per tool; what it returns ends that. */
  onChange(listener: () => void): () => void {
    checkArguments({ of: 'ToolRegistry.onChange', given: { listener }, rules: { listener: FUNCTION } });
    return this.#table.onChange(listener);
  }

  /** The tool for the next call: of one that a function makes, a new instance each time. */
  get(name: string): ToolDefinition | undefined {
    return this.#table.get(name)?.open();
  }

  /** The tool as it is offered, for its options: one that a function makes is not made anew. */
  offered(name: string): ToolDefinition | undefined {
    return this.#table.get(name)?.offered;
  }

  tools(): ToolDefinition[] {
    return Array.from(this.#table.entries(), ([, { offered }]) => offered);
  }

  list(): string[] {
    return Array.from(this.#table.entries(), ([name]) => name);
  }

  count(): number {
    return this.list().length;
  }

  /** One line for people per tool. */
  getSummaries(): string[] {
    return this.tools().map(({ name, description }) => `- \`${name}\` - ${description ?? ''}`);
  }

  /** The definitions for a provider; the same array until something is registered. */
  toProviderDefs(): readonly ToolSchema[] {
    const { revision } = this.#table;
    if (this.#definitions?.revision !== revision) {
      this.#definitions = {
        revision,
        schemas: Object.freeze(this.tools().map((tool: Tool) => toolToSchema(tool))),
      };
    }
    return this.#definitions.schemas;
  }

  /** The same as {@link toProviderDefs}. */
  getDefinitions(): readonly ToolSchema[] {
    return this.toProviderDefs();
  }

  /** Makes a call, as the loop and the bridges do: one that has to wait for somebody is suspended. Never throws. */
  async invoke(call: CallRequest, scope: CallScope = {}, options: InvokeOptions = {}): Promise<Invocation> {
    return this.invoker(options)(recordOrNone(call), scope ?? {}, options.attempt);
  }

  /** What makes the calls of a run: the same as {@link invoke}, with what they share worked out once. */
  invoker({ policy, tasks = this.tasks, ...options }: InvokeOptions = {}): Invoker {
    const policies = policy && [...(this.#environment.policies ?? []), policy];
    const shared = {
      ...this.#environment,
      ...options,
      ...(policies ? { policies } : {}),
      ...(options.onAsyncResult ? { tasks } : {}),
      isTimed: true,
      canSuspend: true,
    };
    return (call, scope, attempt) => callTool(call, { ...shared, scope, attempt }, invocationOf);
  }

  /** Runs a tool; `args` is an object or raw JSON text. Never throws. */
  execute(name: string, args?: unknown): Promise<ToolResult> {
    const result = callTool(this.#numbered(name, args), this.#environment, resultOf);
    return result instanceof Promise ? result : Promise.resolve(result);
  }

  /** Runs a tool in a scope; with a listener, it may answer now and complete later. */
  async executeWithContext(
    name: string,
    args: unknown,
    scope: CallScope = {},
    onAsyncResult?: AsyncCallback,
  ): Promise<ToolResult> {
    const { callId: id } = scope ?? {};
    const call = id === undefined ? this.#numbered(name, args) : { id, name, arguments: args };
    const listener = typeof onAsyncResult === 'function' ? onAsyncResult : undefined;
    const environment = {
      ...this.#environment,
      scope: scope ?? {},
      onAsyncResult: listener,
      tasks: this.tasks,
    };
    return callTool(call, environment, resultOf);
  }

  /** Runs a call and gives its answer as text. Never throws. */
  async call(
    call: Partial<CallRequest> & Pick<CallRequest, 'name'>,
    scope: CallScope = {},
  ): Promise<ToolCallResult> {
    const { name, arguments: args, id: given } = recordOrNone(call);
    const id = given ?? scope?.callId ?? this.#numbered(name, args).id;
    const environment = { ...this.#environment, scope: scope ?? {} };
    const record = await callTool({ id, name, arguments: args }, environment, recordOf);
    return { toolCallId: id, name, content: answerText(record), isError: record.result.isError };
  }

  #numbered(name: string, args: unknown): NumberedCall {
    this.#calls += 1;
    return new NumberedCall(this.#calls, name, args);
  }

  #writable(): WritableToolTable {
    if (this.#table instanceof WritableToolTable) return this.#table;
    throw new ToolDeclarationError([
      {
        where: 'ToolRegistry.view',
        problem: 'a view cannot be changed',
        fix: 'register the tool in the registry itself',
      },
    ]);
  }
}

const REGISTRY = instanceOf(ToolRegistry, 'a ToolRegistry');

/** From JavaScript, a call may be anything: then there is no such tool. */
function recordOrNone<Call>(call: Call): Call {
  return isRecord(call) ? call : ({} as Call);
}

function resultOf({ result }: Invocation): ToolResult {
  return result;
}

function recordOf({ record }: Invocation): CallRecord {
  return record;
}
