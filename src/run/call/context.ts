import type { CallJournal, CallScope, StandingYes, Suspension, Wait } from '../../core/contract/call.js';
import type { JsonObject, SchemaSource, ValueOf } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { InjectionToken, Logger, ScopedResolver } from '../../core/contract/ports.js';
import type { CallTrace } from '../../core/contract/telemetry.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import {
  type OncePart,
  type ProgressUpdate,
  type Question,
  ToolContext,
  type ToolContextData,
} from '../../core/contract/tool-context.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { callListener, onAbort } from '../../core/kernel/async.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { MILLISECONDS } from '../../core/kernel/options.js';
import { createResultChecker, refuseMalformed } from '../../tools/checking/checker.js';
import { summarizeFaults } from '../../tools/checking/faults.js';
import { readSchemaSource } from '../../tools/schema/schema-source.js';
import { CallLog, logThrown } from './call-log.js';
import { argumentsBefore, readRaw } from './check-arguments.js';
import { effectKey, partKey } from './effect-key.js';
import type { CallHooks } from './hooked-call.js';
import type { CallEnvironment, CallOutcome, CallRequest } from './invocation.js';
import { loggerTo, SILENT_LOGGER } from './log.js';
import type { CallPlan } from './plan.js';
import { settleWork, type WorkOf } from './result-form.js';
import { expiryIn } from './waits.js';

const NO_DATA: ToolContextData = Object.freeze({});
const NO_MESSAGES: readonly Message[] = Object.freeze([]);

/** A call in progress: the record that its steps read and write. */
export interface ReceivedCall {
  /** As it arrived, or as a hook or the approver changed it. */
  request: CallRequest;
  readonly environment: CallEnvironment;
  readonly scope: CallScope;
  readonly attempt: number;
  readonly log: CallLog;
  /** The start of the call, by `performance.now()`; 0 if no time is measured. */
  readonly since: number;
  readonly trace: CallTrace | undefined;
  /** Its hooks; absent if there are none. */
  hooked: CallHooks | undefined;
  readonly tool: ToolDefinition | undefined;
  readonly plan: CallPlan | undefined;
  /** The sent arguments, independent of later changes by the tool. */
  sent: unknown;
  /** The repairs that made the arguments valid. */
  repairs: readonly string[];
  /** Paths of keys that the schema does not contain and that were removed. */
  removed: readonly string[];
  /** The valid arguments in JSON form. */
  checked: JsonObject | undefined;
  /** The form for `execute`. */
  args: JsonObject | undefined;
  /** A copy of `checked`, if `@Transform` changed the arguments before their check; it is never changed. */
  transformed: JsonObject | undefined;
  /** Why its approval is no longer valid, for the approver who is asked again. */
  change: string | undefined;
  /** Created on first use. */
  context: CallContext | undefined;
  /** The standing approval that allowed it. */
  standing: StandingYes | undefined;
  /** Work that outlives the answer. Absent without a listener for its end; the call then waits for the work. */
  task: CallWork | undefined;
}

/** A call whose tool was found and whose arguments were checked. */
export interface Call extends ReceivedCall {
  readonly tool: ToolDefinition;
  readonly plan: CallPlan;
  checked: JsonObject;
  args: JsonObject;
}

/**
 * Creates a call. It is not a class instance, because engines discard optimized code of a class that has no instances
 * left.
 */
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
    repairs: NO_PATHS,
    removed: NO_PATHS,
    checked: undefined,
    args: undefined,
    transformed: undefined,
    change: undefined,
    context: undefined,
    standing: undefined,
    task: undefined,
  };
}

const NO_PATHS: readonly string[] = [];

/** The context of a call; it is not created for tools that ignore it. */
export function contextOf(call: Call): CallContext {
  call.context ??= new CallContext(call);
  return call.context;
}

/** The call that a returned value, or background work, belongs to. */
export function workOf(call: Call): WorkOf {
  const { tool, environment } = call;
  return { tool, environment, context: contextOf(call) };
}

/** The key of a call's effect. */
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
    // The arguments of the model or their editor, and not those that run, which depend on the version of the tool.
    const read = readRaw(hooked?.sent ?? text ?? sent);
    const given = journal?.edited === undefined ? (read.ok ? read.value : {}) : journal.arguments;
    return effectKey({ of, tool: name, arguments: given });
  } catch {
    // Only a hook can produce arguments that are nested too deeply to be written.
    return effectKey({ of, tool: name, arguments: {} });
  }
}

/** The timeout of a call, and the signal that aborts it. A tool of a class may compute its timeout in a getter. */
export function limitsOf({ tool, scope, environment }: Pick<Call, 'tool' | 'scope' | 'environment'>) {
  return { signal: scope.signal, timeoutMs: tool.timeoutMs ?? environment.toolTimeoutMs };
}

/** The work of a call that outlives its answer. */
export interface CallWork {
  /** `undefined` until work is started. */
  readonly id: string | undefined;
  /** The work has ended; later events are ignored. */
  readonly isOver: boolean;
  /** Hooks of the executing process already saw the result. */
  readonly isHooked?: boolean;
  begin(work: () => unknown, acknowledgement: string | undefined): ToolResult | Promise<ToolResult>;
  report(update: ProgressUpdate): void;
  /** The outcome of the call, with the work that completes later. */
  outlive(end: CallOutcome): CallOutcome;
  /** The call has its answer: a completion may follow, unless this was the final result. */
  answered(end: CallOutcome): void;
}

/** Receives why a call was stopped. */
type StopListener = (reason: unknown) => void;

/** The context of one call. Expensive parts are created on first use. */
export class CallContext extends ToolContext {
  declare readonly owner: unknown;
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
    const { owner } = call.scope;
    // Not a getter: a scope that has `owner` must have a value for it, and a context may be passed on as a scope.
    if (owner !== undefined) Object.defineProperty(this, 'owner', { value: owner });
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

  get scopes(): readonly string[] | undefined {
    return this.#scope.scopes;
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
    const logger = this.#call.environment.logger ?? SILENT_LOGGER;
    const { onLog } = this.#scope;
    if (onLog === undefined) return logger;
    // Independent of the logger's levels. Errors of the listener have no effect.
    return loggerTo((level, message, fields) => {
      const entry = { level, message, ...(fields ? { fields } : {}) };
      callListener(
        () => onLog(entry, { callId: this.callId, tool: this.toolName }),
        () => {},
      );
      return logger[level](message, fields);
    });
  }

  // Not `AbortSignal.any`: Node never releases its signals if a tool leaves a listener on them.
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

  /** The trace of the call. For the framework. */
  get trace(): CallTrace | undefined {
    return this.#call.trace;
  }

  /** Whether the call was answered before its tool had ended. For the framework. */
  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  progress(update: ProgressUpdate): void {
    const { task } = this.#call;
    // The call already has its answer or completion, so later progress is dropped.
    if (this.isStopped || task?.isOver) return;
    callListener(
      () => this.#scope.onUpdate?.(update, { callId: this.callId, tool: this.toolName }),
      (error) => logThrown(this.#call, 'A listener for tool progress threw', error),
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
        `context.resolve: the tool '${this.toolName}' has no container; set one in the scope: { container }.`,
      );
    }
    this.#container ??= container.createScope?.();
    return (this.#container ?? container).resolve(token);
  }

  /** Whether `resolve` has a container. For the framework. */
  get hasContainer(): boolean {
    const { scope, tool } = this.#call;
    return (scope.container ?? tool.container) !== undefined;
  }

  background(work: () => unknown, acknowledgement?: string): ToolResult | Promise<ToolResult> {
    if (typeof work !== 'function') throw new TypeError('context.background: the work must be a function');
    const { task } = this.#call;
    return task ? task.begin(work, acknowledgement) : settleWork(workOf(this.#call), work);
  }

  ask<Source extends SchemaSource>(question: Question<Source>): Promise<ValueOf<Source>> {
    const answer = this.#answerTo(question);
    const { isSuspended, refused } = this.#replay ?? {};
    // The call ends accordingly even if its method does not await the question.
    if (isSuspended || refused !== undefined) answer.catch(() => {});
    return answer;
  }

  async #answerTo<Source extends SchemaSource>(question: Question<Source>): Promise<ValueOf<Source>> {
    // Not stored as a refusal, which would be the call's own result: that is the acknowledgement.
    if (this.taskId !== undefined || this.#isOver)
      throw new ToolwrightError('NotExecutableHere', tooLateToAsk(this.toolName));
    return (await this.#replaying().ask(question)) as ValueOf<Source>;
  }

  async once<Value>(key: string, work: (part: OncePart) => Value | Promise<Value>): Promise<Value> {
    return this.#replaying().once(key, work);
  }

  /** The questions and `once` work of the method, if there are any. For the framework. */
  get replay(): Replay | undefined {
    return this.#replay;
  }

  #replaying(): Replay {
    this.#replay ??= new Replay(this.#call);
    return this.#replay;
  }

  /** Asks the tool to stop, if it supports this. For the framework. */
  stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#controller?.abort(reason);
    for (const listener of this.#stopListeners ?? []) listener(reason);
  }

  /**
   * Calls a listener on `stop`, which costs less than a signal; the returned function removes it. For the framework.
   */
  onStop(listener: StopListener): () => void {
    if (this.#stopped !== undefined) listener(this.#stopped.reason);
    this.#stopListeners ??= new Set();
    this.#stopListeners.add(listener);
    return () => void this.#stopListeners?.delete(listener);
  }

  /** Whether there are resources to close. For the framework. */
  get isOpen(): boolean {
    return this.#container !== undefined;
  }

  /** Stops observing the run, once the call is completed. For the framework. */
  unfollow(): void {
    this.#isOver = true;
    this.#unfollow?.();
  }

  /** Closes the call's resources, once it is completed; a failure has no further effect. For the framework. */
  async close(): Promise<void> {
    this.unfollow();
    const container = this.#container;
    this.#container = undefined;
    try {
      await container?.dispose();
    } catch (error) {
      logThrown(this.#call, 'A call’s container could not be disposed', error);
    }
  }
}

/**
 * `context.ask` and `context.once` of one call. Entries of the journal from earlier runs of the method replay; new
 * entries are stored for the next run. A question is identified by its message and by how often that was asked
 * before, so that parallel questions may come in any order.
 */
class Replay {
  readonly #unused: Set<CallJournal['answers'][number]>;
  readonly #finished: Map<string, CallJournal['once'][number]>;
  readonly #works = new Map<string, Promise<unknown>>();
  readonly #asked = new Map<string, number>();
  readonly #waits: Wait[] = [];
  /** The error of a question that could not be asked: it is the call's result, even if the method catches it. */
  refused: ToolwrightError | undefined;

  constructor(private readonly call: Call) {
    const { journal } = call.request;
    this.#unused = new Set(journal?.answers);
    this.#finished = new Map(journal?.once.map((entry) => [entry.key, entry]));
  }

  /** Whether the method asked a question without an answer. */
  get isSuspended(): boolean {
    return this.#waits.length > 0;
  }

  /** The answer if there is one; otherwise the call is suspended, or fails if there is no user to ask. */
  async ask(question: Question): Promise<unknown> {
    const { answerWithinMs, canSuspend } = this.call.environment;
    const { message, schema, revive, expiresInMs = answerWithinMs, ...more } = readQuestion(question);
    const index = this.#asked.get(message) ?? 0;
    this.#asked.set(message, index + 1);
    const answered = [...this.#unused].find((entry) => entry.message === message && entry.index === index);
    if (answered === undefined) {
      const { name } = this.call.request;
      const { isStopped } = contextOf(this.call);
      if (isStopped || !canSuspend) {
        const why = `The tool '${name}' asks a question, and questions cannot be answered here.`;
        this.refused ??= new ToolwrightError('NotExecutableHere', isStopped ? tooLateToAsk(name) : why);
        throw this.refused;
      }
      const wait: Wait = { kind: 'question', index, message, ...more, ...expiryIn(expiresInMs) };
      this.#waits.push(withoutUndefined({ ...wait, schema }));
      throw new CallSuspended(name);
    }
    this.#unused.delete(answered);
    // The question may contain personal data: only its number is reported.
    this.call.trace?.event({ type: 'replay', of: 'answer', key: String(index) });
    const { refused, value } = answered;
    if (refused === undefined) return revive(plainJson(value));
    throw new ToolwrightError('ToolRefused', refused.reason ?? 'The user refused');
  }

  /**
   * The value of finished work, or of work that runs now; in JSON form in both cases, so that a replay returns the
   * same as the first run. Work that failed is not finished.
   */
  async once<Value>(given: string, work: (part: OncePart) => Value | Promise<Value>): Promise<Value> {
    // Stored with the run, so it must be text; another object with the same text would count as finished.
    const type = given === null ? 'null' : `a ${typeof given}`;
    if (type !== 'a string' && type !== 'a number')
      throw new TypeError(`context.once: the key must be a string, not ${type}`);
    const key = String(given);
    const finished = this.#finished.get(key);
    if (finished !== undefined) {
      if (!this.#works.has(key)) this.call.trace?.event({ type: 'replay', of: 'once', key });
      return plainJson(finished.value) as Value;
    }
    let running = this.#works.get(key);
    if (running === undefined) {
      running = this.#finish(key, work);
      this.#works.set(key, running);
      running.catch(() => this.#works.delete(key));
    }
    return running as Promise<Value>;
  }

  /** What the call waits for, with its journal; first waits for running `once` work. */
  async suspension(args: CallJournal['arguments']): Promise<Suspension> {
    await Promise.allSettled(this.#works.values());
    const { name, journal } = this.call.request;
    const [lost] = this.#unused;
    if (lost !== undefined) {
      throw new ToolwrightError(
        'InvalidAnswer',
        `'${name}' asked "${this.#waits[0]?.message}" instead of "${lost.message}", which was answered; a method must ask the same questions when it runs again.`,
      );
    }
    const { answers = [], ...known } = journal ?? {};
    return {
      waits: this.#waits,
      journal: { ...known, arguments: args, answers, once: [...this.#finished.values()] },
    };
  }

  async #finish(key: string, work: (part: OncePart) => unknown): Promise<unknown> {
    if (typeof work !== 'function')
      throw new TypeError(`context.once('${key}'): the work must be a function`);
    const { keepOnce } = this.call.request;
    const context = contextOf(this.call);
    const part: OncePart = {
      get idempotencyKey() {
        return partKey(context.idempotencyKey, key);
      },
    };
    const given: unknown = await work(part);
    let value: unknown;
    try {
      value = given === undefined ? undefined : JSON.parse(JSON.stringify(given));
    } catch (cause) {
      throw new TypeError(`context.once('${key}'): the value cannot be written as JSON`, { cause });
    }
    const done = withoutUndefined({ key, value });
    this.#finished.set(key, done);
    // Saved before the tool continues; without `keepOnce`, saved only with the suspended run.
    await keepOnce?.({ ...done, arguments: argumentsBefore(this.call) });
    // A copy, because the method may change its value.
    return plainJson(value);
  }
}

/**
 * Thrown by `context.ask` if there is no answer yet. It ends the method, so that its `finally` blocks release
 * resources. A method that catches it is suspended all the same.
 */
export class CallSuspended extends Error {
  constructor(tool: string) {
    super(`The call of '${tool}' is suspended until its question is answered; do not catch this error.`);
  }
}

/** Reads a question of a method. Throws if its schema is invalid: that is a mistake of the tool, and fails the call. */
function readQuestion(question: Question) {
  const { message, schema: source, expiresInMs, onRefusal } = Object(question) as Partial<Question>;
  if (typeof message !== 'string' || message.trim() === '')
    throw new TypeError('context.ask: `message` is missing');
  if (expiresInMs !== undefined && !MILLISECONDS.accepts(expiresInMs))
    throw new TypeError(`context.ask: \`expiresInMs\` must be ${MILLISECONDS.fix}`);
  const read = source === undefined ? undefined : readSchemaSource(source);
  if (read?.ok === false) throw new TypeError(`context.ask: \`schema\` ${read.problem}; write ${read.fix}`);
  if (read !== undefined) refuseMalformed(read.schema, 'context.ask: `schema`');
  const revive = async (value: unknown): Promise<unknown> => {
    if (read === undefined) return value;
    // The answer was checked on arrival, but another version of the method may have asked for something else.
    const parsed = await read.standard?.['~standard'].validate(value);
    const faults = parsed === undefined ? createResultChecker(read.schema)(value) : [];
    if (faults.length === 0 && parsed?.issues === undefined)
      return parsed === undefined ? value : parsed.value;
    const problems = parsed?.issues?.map(({ message }) => message) ?? [summarizeFaults(faults)];
    throw new ToolwrightError(
      'InvalidAnswer',
      `The answer does not fit the schema of the question: ${problems.join('; ')}`,
    );
  };
  return { message, schema: read?.schema, expiresInMs, revive, ...(onRefusal === 'throw' && { onRefusal }) };
}

function tooLateToAsk(tool: string): string {
  return `The tool '${tool}' asks a question after its call has ended.`;
}
