import type { CallScope, HookNote, LogListener, StandingYes } from '../contract/call.js';
import type { JsonObject, SchemaSource, ValueOf } from '../contract/json-schema.js';
import type { Message } from '../contract/llm-provider.js';
import type { InjectionToken, LogFields, Logger, LogLevel, ScopedResolver } from '../contract/ports.js';
import type { CallTrace } from '../contract/telemetry.js';
import type { ArgumentFault, ToolDefinition } from '../contract/tool.js';
import {
  type OncePart,
  type ProgressUpdate,
  type Question,
  ToolContext,
  type ToolContextData,
} from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { callListener, type Limits, onAbort } from '../kernel/async.js';
import { argumentsBefore, readRaw } from './check-arguments.js';
import { effectKey, partKey } from './effect-key.js';
import type { Block, CallEnvironment, CallOutcome, CallRequest } from './invocation.js';
import { CallLog } from './log.js';
import type { CallPlan } from './plan.js';
import { Replay } from './replay.js';
import { settleWork } from './result-form.js';

const NO_DATA: ToolContextData = Object.freeze({});
const NO_MESSAGES: readonly Message[] = Object.freeze([]);

/** A call in progress: the one record that its steps read and write. */
export interface ReceivedCall {
  /** As it came, or as a hook or whoever approved it changed it. */
  request: CallRequest;
  readonly environment: CallEnvironment;
  readonly scope: CallScope;
  readonly attempt: number;
  readonly log: CallLog;
  /** When the call began, by `performance.now()`; 0 if no time is taken. */
  readonly since: number;
  readonly trace: CallTrace | undefined;
  /** Its hooks; absent if there are none. */
  hooked: CallHooks | undefined;
  readonly tool: ToolDefinition | undefined;
  readonly plan: CallPlan | undefined;
  /** The arguments as they were sent, whatever the tool does to them. */
  sent: unknown;
  /** What had to be repaired before the arguments fitted. */
  repairs: readonly string[];
  /** Paths of keys that the schema does not contain and that were removed. */
  removed: readonly string[];
  /** The arguments in JSON form, as they fit the schema. */
  checked: JsonObject | undefined;
  /** As `execute` takes them. */
  args: JsonObject | undefined;
  /** As `checked`, if `@Transform` changed them before their check; nobody changes this one. */
  transformed: JsonObject | undefined;
  /** Created when something first needs it. */
  context: CallContext | undefined;
  /** The standing approval that let it through. */
  standing: StandingYes | undefined;
  /** Work that outlives the answer; absent without a listener for its end, so that the call waits for it. */
  task: CallWork | undefined;
}

/** A call whose tool was found and whose arguments were checked. */
export interface Call extends ReceivedCall {
  readonly tool: ToolDefinition;
  readonly plan: CallPlan;
  checked: JsonObject;
  args: JsonObject;
}

/** A call in which nothing has happened yet. No class: an engine drops code for a class that has no instance left. */
export function newCall(
  environment: CallEnvironment,
  request: CallRequest,
  {
    scope,
    plan,
    attempt = 1,
    trace,
  }: Pick<ReceivedCall, 'scope' | 'plan'> & Partial<Pick<ReceivedCall, 'attempt' | 'trace'>>,
): ReceivedCall {
  const { logger, isRecorded } = environment;
  return {
    request,
    environment,
    scope,
    attempt,
    log: logger === undefined ? CallLog.none : new CallLog(environment, request),
    since: logger !== undefined || isRecorded ? performance.now() : 0,
    trace,
    hooked: undefined,
    tool: plan?.tool,
    plan,
    sent: request.arguments,
    repairs: NONE,
    removed: NONE,
    checked: undefined,
    args: undefined,
    transformed: undefined,
    context: undefined,
    standing: undefined,
    task: undefined,
  };
}

const NONE: readonly string[] = [];

/** The context of a call, which a tool that ignores it does without. */
export function contextOf(call: Call): CallContext {
  call.context ??= new CallContext(call);
  return call.context;
}

/** The key of what a call does. */
export function keyOfEffect(call: ReceivedCall): string {
  return call.context?.idempotencyKey ?? newKey(call);
}

function newKey({ request, scope, tool, hooked, sent }: ReceivedCall): string {
  const { journal, text, idempotencyKey } = request;
  if (idempotencyKey !== undefined) return idempotencyKey;
  const of = request.place ?? scope.callId;
  if (of === undefined) return crypto.randomUUID();
  const name = tool?.name ?? request.name;
  try {
    // What the model sent, or somebody made of that; not what runs, which depends on the version of the tool.
    const read = readRaw(hooked?.sent ?? text ?? sent);
    const given = journal?.edited === undefined ? (read.ok ? read.value : {}) : journal.arguments;
    return effectKey({ of, tool: name, arguments: given });
  } catch {
    // Only a hook makes something of arguments that are nested too deep to be written.
    return effectKey({ of, tool: name, arguments: {} });
  }
}

/** How long a call may take, and what ends it before. A tool of a class may tell its own limit by a getter. */
export function limitsOf({ tool, scope, environment }: Pick<Call, 'tool' | 'scope' | 'environment'>): Limits {
  return { signal: scope.signal, timeoutMs: tool.timeoutMs ?? environment.toolTimeoutMs };
}

/** The work of a call that outlives its answer. */
export interface CallWork {
  /** None as long as nothing was started. */
  readonly id: string | undefined;
  /** It has ended; nothing more is heard of it. */
  readonly isOver: boolean;
  /** The hooks of whoever did it have had their say about its result. */
  readonly isHooked?: boolean;
  begin(work: () => unknown, acknowledgement: string | undefined): ToolResult | Promise<ToolResult>;
  report(update: ProgressUpdate): void;
  /** What came of the call, with the work that completes later. */
  outlive(end: CallOutcome): CallOutcome;
  /** The call has its answer: a completion may follow, unless this was the last word. */
  answered(end: CallOutcome): void;
}

type MaybeLater<Value> = Value | Promise<Value>;

/** The hooks of a registry or a run, for one call. Nothing of it throws or rejects. */
export interface CallHooks {
  /** A hook has answered the call in place of the tool. */
  readonly isAnswered: boolean;
  /** The arguments as they came, before any hook. */
  readonly rawArguments: unknown;
  /** The same as text, if there is one. */
  readonly sent: unknown;
  /** What hooks did so far. */
  readonly notes: readonly HookNote[];
  /** Asks `beforeCall`, and puts the arguments that the call goes on with into its request. */
  beforeCall(): MaybeLater<
    Block | { readonly type: 'rejected'; readonly faults: readonly ArgumentFault[] } | undefined
  >;
  /** Asks `beforeRun`: what keeps the tool from running now, if anything does. */
  beforeRun(): MaybeLater<Block | undefined>;
  /** The outcome of the call as `onError` and `afterCall` leave it. */
  after(outcome: CallOutcome): MaybeLater<CallOutcome>;
  /** The same of the result of started work. */
  completed(result: ToolResult): MaybeLater<ToolResult>;
}

/** Hears why a call was stopped. */
export type StopListener = (reason: unknown) => void;

/** The context of one call. Whatever costs something is built when the tool first asks for it. */
export class CallContext extends ToolContext {
  readonly #call: Call;
  #controller: AbortController | undefined;
  #container: ScopedResolver | undefined;
  #messages: readonly Message[] | undefined;
  #stopped: { readonly reason: unknown } | undefined;
  #stopListeners: Set<StopListener> | undefined;
  #unfollow: (() => void) | undefined;
  #isOver = false;
  #replay: Replay | undefined;
  #key: string | undefined;

  constructor(call: Call) {
    super();
    this.#call = call;
  }

  get #scope(): CallScope {
    return this.#call.scope;
  }

  get callId(): string {
    return this.#call.request.id;
  }

  get toolName(): string {
    return this.#call.request.name;
  }

  get channel(): string | undefined {
    return this.#scope.channel;
  }

  get chatId(): string | undefined {
    return this.#scope.chatId;
  }

  get conversationId(): string | undefined {
    return this.#scope.conversationId;
  }

  get owner(): unknown {
    return this.#scope.owner;
  }

  get runId(): string | undefined {
    return this.#call.request.place?.runId;
  }

  get messages(): readonly Message[] {
    const { messages = NO_MESSAGES } = this.#scope;
    this.#messages ??= Object.isFrozen(messages) ? messages : Object.freeze([...messages]);
    return this.#messages;
  }

  get data(): ToolContextData {
    return this.#scope.data ?? NO_DATA;
  }

  get attempt(): number {
    return this.#call.attempt;
  }

  get idempotencyKey(): string {
    this.#key ??= newKey(this.#call);
    return this.#key;
  }

  get taskId(): string | undefined {
    return this.#call.task?.id;
  }

  get rawArguments(): unknown {
    return this.#call.sent;
  }

  get logger(): Logger {
    const logger = this.#call.environment.logger ?? silentLogger;
    const { onLog } = this.#scope;
    return onLog
      ? heardLogger(logger, (entry) => onLog(entry, { callId: this.callId, tool: this.toolName }))
      : logger;
  }

  // Not `AbortSignal.any`: Node keeps what that makes for ever, once a tool has left a listener on it.
  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    const controller = new AbortController();
    this.#controller = controller;
    const { signal: outer } = this.#scope;
    const follow = (): void => controller.abort(outer?.reason);
    if (this.#stopped !== undefined) controller.abort(this.#stopped.reason);
    else if (outer?.aborted) follow();
    else if (outer !== undefined && !this.#isOver) this.#unfollow = onAbort(outer, follow);
    return controller.signal;
  }

  /** Where the call is recorded. For the framework. */
  get trace(): CallTrace | undefined {
    return this.#call.trace;
  }

  /** Whether the call was answered before its tool had ended. For the framework. */
  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  progress(update: ProgressUpdate): void {
    const { task, log } = this.#call;
    // The call has been answered as timed out or aborted, or has completed: nothing is left to hear of it.
    if (this.isStopped || task?.isOver) return;
    callListener(
      () => this.#scope.onUpdate?.(update, { callId: this.callId, tool: this.toolName }),
      (error) => log.ignored('A listener for tool progress threw', { error }),
    );
    task?.report(update);
  }

  resolve<Instance>(token: InjectionToken<Instance>): Instance {
    const { scope, tool } = this.#call;
    if (scope.container !== undefined) return scope.container.resolve(token);
    const { container } = tool;
    if (container === undefined) {
      throw new ToolwrightError(
        'ToolExecutionFailed',
        `context.resolve: the tool '${this.toolName}' came without a container; give one in the scope: { container }.`,
      );
    }
    this.#container ??= container.createScope?.();
    return (this.#container ?? container).resolve(token);
  }

  /** Whether there is anything that `resolve` could ask. For the framework. */
  get hasContainer(): boolean {
    const { scope, tool } = this.#call;
    return (scope.container ?? tool.container) !== undefined;
  }

  background(work: () => unknown, acknowledgement?: string): ToolResult | Promise<ToolResult> {
    if (typeof work !== 'function') throw new TypeError('context.background: its work is a function');
    const { task, tool, environment } = this.#call;
    return task ? task.begin(work, acknowledgement) : settleWork({ tool, environment, context: this }, work);
  }

  async ask<Source extends SchemaSource>(question: Question<Source>): Promise<ValueOf<Source>> {
    // Not noted as a refusal, which would be the call's own result: that is the acknowledgement.
    if (this.taskId !== undefined) throw new ToolwrightError('NotExecutableHere', this.#tooLateToAsk);
    return (await this.#replaying().ask(question)) as ValueOf<Source>;
  }

  async once<Value>(key: string, work: (part: OncePart) => Value | Promise<Value>): Promise<Value> {
    return this.#replaying().once(key, work);
  }

  /** What was asked and done once, where the method asked or did anything so. For the framework. */
  get replay(): Replay | undefined {
    return this.#replay;
  }

  #replaying(): Replay {
    const { request, environment } = this.#call;
    const { keepOnce } = request;
    this.#replay ??= new Replay({
      tool: this.toolName,
      journal: request.journal,
      keyOf: (part) => partKey(this.idempotencyKey, part),
      // Before the tool goes on; without it, what was done once is kept with the suspended run only.
      keep: keepOnce && ((done) => keepOnce({ ...done, arguments: argumentsBefore(this.#call) })),
      refusal: () => {
        if (this.isStopped) return this.#tooLateToAsk;
        if (environment.canSuspend) return undefined;
        return `The tool '${this.toolName}' asks a question, and nobody can answer here.`;
      },
      onReplay: (of, key) => this.trace?.event({ type: 'replay', of, key }),
      answerWithinMs: environment.answerWithinMs,
    });
    return this.#replay;
  }

  get #tooLateToAsk(): string {
    return `The tool '${this.toolName}' asks a question, and its call has been answered already.`;
  }

  /** Tells the tool to stop, if it listens. For the framework. */
  stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#controller?.abort(reason);
    for (const listener of this.#stopListeners ?? []) listener(reason);
  }

  /** Tells of `stop`, which costs less than a signal; gives what ends the listening. For the framework. */
  onStop(listener: StopListener): () => void {
    if (this.#stopped !== undefined) listener(this.#stopped.reason);
    this.#stopListeners ??= new Set();
    this.#stopListeners.add(listener);
    return () => void this.#stopListeners?.delete(listener);
  }

  /** Whether something was opened that has to be closed. For the framework. */
  get isOpen(): boolean {
    return this.#container !== undefined;
  }

  /** Takes no more notice of the run, once the call has completed. For the framework. */
  unfollow(): void {
    this.#isOver = true;
    this.#unfollow?.();
  }

  /** Closes what the call opened, once it has completed; a failure concerns nobody else. For the framework. */
  async close(): Promise<void> {
    this.unfollow();
    const container = this.#container;
    this.#container = undefined;
    try {
      await container?.dispose();
    } catch (error) {
      this.#call.log.ignored('A call’s container could not be disposed', { error });
    }
  }
}

/** A logger that somebody listens to, whatever levels it writes itself. A listener that throws changes nothing. */
function heardLogger(logger: Logger, onEntry: (entry: Parameters<LogListener>[0]) => void): Logger {
  const write = (level: LogLevel) => (message: string, fields?: LogFields) => {
    callListener(
      () => onEntry({ level, message, ...(fields ? { fields } : {}) }),
      () => {},
    );
    return logger[level](message, fields);
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

const nothing = (): void => {};

/** The logger where none was given. */
const silentLogger: Logger = {
  ...{ debug: nothing, info: nothing, warn: nothing, error: nothing },
  isLevelEnabled: () => false,
};
