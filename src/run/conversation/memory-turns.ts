import { AsyncLocalStorage } from 'node:async_hooks';
import { addSpending, type Spending } from '../../core/contract/budget.js';
import type { Answer, CallScope } from '../../core/contract/call.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { BackgroundTask, ToolContext } from '../../core/contract/tool-context.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { refuseOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { anySignal, callListener, onAbort } from '../../core/kernel/async.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { createResultChecker, type ResultChecker } from '../../tools/checking/checker.js';
import { logFailure } from '../call/failure-log.js';
import { type CompletedCall, completionOf } from '../call/job-dispatch.js';
import { interruptedResult } from '../call/result-text.js';
import type { TaskQueue } from '../call/task-queue.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { driveLoop } from '../loop/drive.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';
import { historyFaults } from '../loop/given-history.js';
import { abortedBefore, type RunDeps, type RunProgress, type RunStart } from '../loop/loop-run.js';
import { askedAnew, resumeWith } from '../loop/resume.js';
import { checkOwner } from '../loop/run-owner.js';
import { COUNT_SCHEMA, list, MESSAGES, object, PROGRESS, TEXT_SCHEMA } from '../loop/run-state-schema.js';
import { driveStoredRun } from '../loop/stored-run.js';
import { isSignedWith, progressOf, signState, validateState } from '../loop/suspend.js';
import { callOfContext, EventHub, nothingAsked, type Turn, type TurnOrigin, turnMessage } from './events.js';
import type { AnswerOptions, ConversationConfig, TurnOptions } from './options.js';

/** The config of a conversation with all defaults. */
interface ReadyConfig extends ConversationConfig {
  readonly id: string;
  readonly messages: readonly Message[];
  readonly tools: ToolRegistry;
}

/** An entry that waits for its turn. */
interface InboxEntry {
  readonly origin: TurnOrigin;
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
  /** Without it, only `turn-end` reports the outcome of the turn. */
  readonly outcome?: Outcome;
  /** Runs the turn in the `AsyncLocalStorage` of its caller, not in that of the previous turn. */
  readonly within: <Result>(run: () => Result) => Result;
  /** Removes the listener of the signal. */
  readonly unfollow: () => void;
}

/**
 * Takes the turns of a conversation in the memory of this process. A turn opens and ends synchronously, and its
 * listeners are notified immediately: state that they read, and turns that they start in an event, are consistent
 * with that event.
 */
export class MemoryTurns {
  readonly events: EventHub;
  readonly #taskQueue: TaskQueue;
  /** In order of arrival. */
  readonly #inbox = new Set<InboxEntry>();
  /** The messages before the open turn. */
  #history: HistoryView;
  /** The running or suspended turn. */
  #turn: MemoryTurn | undefined;
  /** The number of turns begun so far. */
  #count = 0;
  /** By turns that have ended. */
  #spent: Spending | undefined;
  /** No turn starts, because the conversation was just restored. */
  #isHeld = false;
  #isClosed = false;
  #idleWaiters: readonly { readonly tasks: boolean; readonly resolve: () => void }[] = [];
  #unsubscribeTasks: (() => void) | undefined;

  constructor(private config: ReadyConfig) {
    this.#history = new HistoryView([...config.messages]);
    this.#taskQueue = config.tasks ?? config.tools.tasks;
    this.events = new EventHub((error) => this.#logFailure('A listener of a conversation threw', error));
  }

  get messages(): readonly Message[] {
    return Object.freeze((this.#turn?.history ?? this.#history).messages);
  }

  /** The waits of the open turn, if it is suspended. */
  get suspended(): SuspendedStatus | undefined {
    return this.#turn?.suspended;
  }

  get spent(): Spending | undefined {
    return addSpending(this.#spent, this.suspended?.state.spent);
  }

  /** The waiting and running work of the conversation, in the order in which it was started. */
  get tasks(): readonly BackgroundTask[] {
    return this.#taskQueue.tasks.filter(({ conversationId }) => conversationId === this.config.id);
  }

  cancel(taskId: string, reason: string | undefined): boolean {
    return this.tasks.some(({ id }) => id === taskId) && this.#taskQueue.cancel(taskId, reason);
  }

  enter(origin: TurnOrigin, { signal, scope }: TurnOptions): Promise<ToolLoopResult> {
    const stop = anySignal(signal, scope?.signal);
    if (stop?.aborted) return Promise.resolve(abortedBefore(this.messages, stop));
    const outcome = Promise.withResolvers<ToolLoopResult>();
    this.#add({ origin, scope: this.#scopeOf(this.config.scope, scope), signal: stop, outcome });
    this.#work();
    return outcome.promise;
  }

  /** A turn that starts with the last message of the history. */
  continue(options: TurnOptions): Promise<ToolLoopResult> {
    this.#checkFree('It was not continued');
    if (this.#inbox.size > 0) throw notReady('It was not continued', 'what waits for a turn comes first');
    const role = this.messages.at(-1)?.role;
    if (role !== 'user' && role !== 'tool') {
      const end = role === undefined ? 'nothing was said yet' : 'the model has said the last word';
      throw notReady('It was not continued', `${end}: use \`prompt\``);
    }
    return this.enter({ kind: 'continue' }, options);
  }

  /** A suspended run keeps its model and its prompt; its tools are looked up again. */
  update(changes: Partial<ReadyConfig>): void {
    if (this.#turn !== undefined && this.suspended === undefined)
      throw notReady('It was not changed', RUNNING);
    // The queue stays, so that running work is still listed and can be cancelled.
    this.config = { ...this.config, ...changes, tasks: this.#taskQueue };
  }

  edit(change: (messages: Message[]) => readonly Message[]): void {
    this.#checkFree('Its history was not edited');
    const edited = change([...this.messages]);
    const where = 'Conversation.editHistory';
    refuseOptions(historyFaults(edited, 'refuse').map((fault) => ({ ...fault, where })));
    this.#history = new HistoryView([...edited]);
  }

  answer(answers: readonly Answer[], options: AnswerOptions): Promise<ToolLoopResult> {
    const { signal, scope } = options;
    const { suspended } = this;
    const turn = this.#turn;
    if (turn === undefined || suspended === undefined) throw nothingAsked();
    const { start } = turn;
    const answeredBy = plainJson(options.answeredBy);
    const checking = resumeWith(this.config, suspended.state, {
      answers,
      answeredBy,
      // A given scope must contain the owner, too.
      scope: scope ?? start.scope,
      // For a run in the store, the stored state is authoritative.
      isCertain: start.isCertain || suspended.isKept,
      isTrial: true,
    });
    const take = async (): Promise<ToolLoopResult> => {
      // The turn was answered or aborted while edited arguments were checked.
      if (this.suspended !== suspended || this.#isClosed) throw nothingAsked();
      const outcome = Promise.withResolvers<ToolLoopResult>();
      const parts = { scope: this.#scopeOf(start.scope, scope), signal: anySignal(signal, scope?.signal) };
      this.#start(this.#open({ ...turn.resumedWith({ answers, answeredBy }, 'answer'), ...parts, outcome }));
      return outcome.promise;
    };
    const refuse = (error: unknown): never => {
      const anew = askedAnew(error, this.config.stateSecret);
      // For a run in the store, the process that claims it requests the approval again.
      if (anew !== undefined && !suspended.isKept && this.suspended === suspended)
        turn.status = { ...suspended, state: anew };
      throw error;
    };
    return checking instanceof Promise ? checking.then(take, refuse) : take();
  }

  abort(reason: unknown): void {
    const turn = this.#turn;
    if (turn?.suspended === undefined) {
      turn?.abort(reason);
      return;
    }
    const resumed = this.#open(turn.resumedWith({ answers: [] }, 'abort'));
    resumed.abort(reason);
    this.#start(resumed);
  }

  idle(tasks: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idleWaiters = [...this.#idleWaiters, { tasks, resolve }];
    this.#notifyIdle();
    return promise;
  }

  snapshot({ isClosing = false } = {}): ConversationSnapshot {
    const { id, scope, stateSecret: secret } = this.config;
    const turn = this.#turn;
    const inbox = Array.from(
      this.#inbox,
      ({ origin, scope: { owner } }): StoredOrigin => (owner === undefined ? origin : { ...origin, owner }),
    );
    const isOwned = [scope, turn?.start.scope, ...inbox].some((named) => named?.owner !== undefined);
    const { messages, tasks } = this;
    const stored = turn?.stored(isClosing);
    const snapshot = {
      version: 2,
      id,
      messages,
      turns: this.#count,
      turn: stored,
      inbox,
      tasks,
      spent: this.#spent,
    };
    return signState(JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot, { secret, isOwned });
  }

  /** Continues from a snapshot, in the next turn of the event loop. */
  restore({ snapshot: { turns, turn, inbox, tasks, spent }, isCertain }: ValidSnapshot): void {
    this.#count = turns;
    this.#spent = spent;
    this.#isHeld = true;
    const scope = this.#scopeOf(this.config.scope);
    const refused = inbox.flatMap(({ owner, ...origin }) => {
      try {
        checkOwner({ owner, isCertain }, scope);
        this.#add({ origin, scope });
        return [];
      } catch (error) {
        return [{ origin, error }];
      }
    });
    const lost = tasks.map((task) => ({ task, result: interruptedResult(task.tool) }));
    for (const { task, result } of lost) {
      const { tool, callId, id: taskId } = task;
      this.#add({ origin: completionOf({ tool, callId, taskId }, result), scope });
    }
    if (turn !== undefined) {
      const { number, origin, isAborted, standing: begin } = turn;
      const resumedBy = begin.status === 'suspended' ? {} : { resumedBy: 'restore' as const };
      const opened = this.#open({
        turn: { number, origin, ...resumedBy },
        scope,
        begin,
        history: this.#historyOf(begin),
        isCertain,
      });
      if (isAborted) opened.abort(new DOMException('The turn was aborted.', 'AbortError'));
    }
    const restored = this.#turn;
    setImmediate(() => {
      this.#isHeld = false;
      if (this.#isClosed) return this.#notifyIdle();
      for (const ended of lost) this.events.emit({ type: 'task-end', ...ended });
      for (const { origin, error } of refused) {
        this.#count += 1;
        this.#logFailure('Turn failed', error);
        this.events.emit({ type: 'turn-end', turn: { number: this.#count, origin }, error });
      }
      // An answer or an abort has replaced a suspended turn that it continues.
      if (restored !== undefined && restored === this.#turn && !this.suspended) this.#start(restored);
      else this.#work();
    });
  }

  /** Stops new turns, drops waiting entries and aborts running ones; the snapshot shows none of this. */
  close(): ConversationSnapshot {
    const snapshot = this.snapshot({ isClosing: true });
    this.#isClosed = true;
    const closed = new DOMException('The conversation was closed.', 'AbortError');
    for (const entry of this.#inbox) {
      entry.unfollow();
      entry.outcome?.resolve(abortedBefore(this.messages, AbortSignal.abort(closed)));
    }
    this.#inbox.clear();
    for (const { id } of this.tasks) this.cancel(id, 'the conversation was closed');
    if (this.#turn?.isRunning) this.#turn.abort(closed);
    else this.#endTurn();
    this.#notifyIdle();
    return snapshot;
  }

  #begin(entry: InboxEntry): void {
    const { origin, scope, signal, outcome, within, unfollow } = entry;
    this.#inbox.delete(entry);
    unfollow();
    this.#count += 1;
    const said = turnMessage(origin);
    const history = this.#history.extended(this.config.systemPrompt, said === undefined ? [] : [said]);
    const begin = withoutUndefined({ status: 'running' as const, owner: scope.owner });
    const turn = { number: this.#count, origin };
    within(() => this.#start(this.#open({ turn, scope, signal, begin, history, isCertain: true, outcome })));
  }

  /** Starts the next turn if one can start. */
  #work(): void {
    const [entry] = this.#inbox;
    const isStopped = this.#isHeld || this.#isClosed;
    if (this.#turn === undefined && !isStopped && entry !== undefined) this.#begin(entry);
    else this.#notifyIdle();
  }

  #add(arrived: Omit<InboxEntry, 'within' | 'unfollow'>): void {
    const { signal, outcome } = arrived;
    const withdraw = (): void => {
      this.#inbox.delete(entry);
      outcome?.resolve(abortedBefore(this.messages, signal));
      this.#notifyIdle();
    };
    const unfollow = signal === undefined ? () => {} : onAbort(signal, withdraw);
    const entry: InboxEntry = { ...arrived, unfollow, within: AsyncLocalStorage.snapshot() };
    this.#inbox.add(entry);
  }

  /** Opens a turn, replacing the suspended turn that it continues; it starts later or is suspended. */
  #open(start: TurnStart): MemoryTurn {
    const { config } = this;
    const signal = anySignal(config.signal, config.scope?.signal, start.signal);
    this.#turn = new MemoryTurn({ ...start, signal }, config.store !== undefined);
    return this.#turn;
  }

  /** Starts the open turn and notifies listeners immediately. */
  #start(turn: MemoryTurn): void {
    turn.isRunning = true;
    this.#unsubscribeTasks ??= this.#taskQueue.subscribe((event) => {
      if (event.task.conversationId !== this.config.id) return;
      this.events.emit(event);
      if (event.type !== 'task-end') return;
      this.#restTasks();
      this.#notifyIdle();
    });
    this.events.emit({ type: 'turn-start', turn: turn.start.turn });
    void this.#take(turn);
  }

  /** Runs a turn, and starts the next one. */
  async #take(turn: MemoryTurn): Promise<void> {
    const { outcome } = turn.start;
    // The caller that opened the turn continues first.
    await Promise.resolve();
    try {
      const result = await this.#run(turn);
      if (result.state === undefined) this.#spent = addSpending(this.#spent, result.spent);
      this.#leave(turn, { result });
      outcome?.resolve(result);
    } catch (error) {
      turn.fail();
      this.#leave(turn, { error });
      if (outcome === undefined) this.#logFailure('Turn failed', error);
      else outcome.reject(error);
    }
    // A listener may have begun another turn.
    this.#restTasks();
    this.#work();
  }

  /** Reports that the run of a turn has ended or is suspended; the work that it has started continues. */
  #leave(turn: MemoryTurn, end: { readonly result: ToolLoopResult } | { readonly error: unknown }): void {
    turn.leave();
    if (turn.suspended === undefined) this.#endTurn();
    this.events.emit({ type: 'turn-end', turn: turn.start.turn, ...end });
  }

  async #run(turn: MemoryTurn): Promise<ToolLoopResult> {
    const { signal, start } = turn;
    const { scope } = start;
    const running = new Set<string>();
    const sink = (event: LoopEvent): void => {
      if (event.type === 'call-start') running.add(event.callId);
      if (event.type === 'call-end' || event.type === 'call-suspended') running.delete(event.callId);
      // Progress of work that outlives its call is reported as `task-progress`.
      if (event.type === 'call-progress' && !running.has(event.callId)) return;
      if (event.type === 'run-end') turn.end(event.result);
      this.events.emit(event);
      if (event.type !== 'call-end') return;
      const { callId, tool, result, record } = event;
      emitUserMessage(this.events, result, { tool, callId, taskId: record.taskId });
    };
    const config: ConversationConfig = {
      ...this.config,
      signal,
      onAsyncResult: (context, completion) => this.#complete(scope, context, completion),
    };
    const deps = {
      scope,
      sink,
      hasReader: () => this.events.hasListeners,
      onStep: turn.onStep,
    };
    const result = await drive(turn, config, deps);
    turn.end(result);
    return result;
  }

  /** The history of a restored turn: after the system prompt, which a suspended run keeps. */
  #historyOf(begin: TurnStatus): HistoryView {
    if (begin.status === 'running') return this.#history.extended(this.config.systemPrompt, []);
    const messages = [...begin.state.messages];
    return new HistoryView(messages, messages.length - this.messages.length);
  }

  /** Closes the open turn, though its run may not have ended. */
  #endTurn(): void {
    this.#history = this.#turn?.history ?? this.#history;
    this.#turn?.leave();
    this.#turn = undefined;
  }

  /** Unsubscribes from the queue if no turn runs and no work continues. */
  #restTasks(): void {
    if (this.#turn?.isRunning || this.tasks.length > 0) return;
    this.#unsubscribeTasks?.();
    this.#unsubscribeTasks = undefined;
  }

  /** Handles the completion of work that a turn had started in this scope. */
  #complete(scope: CallScope, context: ToolContext | undefined, result: ToolResult): void {
    if (this.#isClosed) return;
    const call = callOfContext(context);
    this.#add({ origin: completionOf(call, result), scope });
    emitUserMessage(this.events, result, call);
    const { onAsyncResult } = this.config;
    callListener(
      () => onAsyncResult?.(context, result),
      (error) => this.#logFailure('A listener for async results threw', error),
    );
    // After the end of the task has been reported.
    queueMicrotask(() => this.#work());
  }

  /** The signal of a scope ends a turn, but not the work that the turn starts. */
  #scopeOf(outer: CallScope | undefined, scope?: CallScope): CallScope {
    const { signal: _, ...merged } = { ...outer, ...scope };
    return { ...merged, conversationId: this.config.id };
  }

  #notifyIdle(): void {
    const isAtRest = this.#turn === undefined ? this.#inbox.size === 0 : this.suspended !== undefined;
    if (this.#idleWaiters.length === 0 || this.#isHeld || !isAtRest) return;
    const hasTasks = this.tasks.length > 0;
    const over = this.#idleWaiters.filter(({ tasks }) => !tasks || !hasTasks);
    this.#idleWaiters = this.#idleWaiters.filter((waiter) => !over.includes(waiter));
    for (const { resolve } of over) resolve();
  }

  /** Throws if a turn runs or is suspended. */
  #checkFree(what: string): void {
    if (this.suspended !== undefined) throw notReady(what, 'a turn waits for answers: answer or abort it');
    if (this.#turn !== undefined) throw notReady(what, RUNNING);
  }

  #logFailure(what: string, error: unknown): void {
    const { logger, tools, id } = this.config;
    logFailure(logger ?? tools.logger, { what, error, at: { conversationId: id } });
  }
}

/** Receives the outcome of a turn. */
type Outcome = Pick<PromiseWithResolvers<ToolLoopResult>, 'resolve' | 'reject'>;

/** What a turn begins or continues with in this process. */
interface TurnStart {
  readonly turn: Turn;
  /** Without a signal, because work that the turn starts outlives it. */
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
  /** The state from which the turn continues in this process. */
  readonly begin: TurnStatus;
  /** The history with the origin of the turn. */
  readonly history: HistoryView;
  /** The owner of the turn is certain: it began in this process, or its snapshot is signed. */
  readonly isCertain: boolean;
  readonly outcome?: Outcome | undefined;
}

/** A turn that has begun in this process, its progress, and its state for a snapshot. */
class MemoryTurn {
  /** The history up to the last message whose calls all have their answers. */
  history: HistoryView;
  /** The state for a snapshot; `undefined` once the run has ended. */
  status: TurnStatus | (() => TurnStatus) | undefined;
  /** In this process. */
  isRunning = false;
  readonly #stop = new AbortController();
  #ended: ToolLoopResult | undefined;
  readonly #unfollow: () => void;

  constructor(
    readonly start: TurnStart,
    /** Suspended runs of the turn are in a store. */
    private readonly hasStore: boolean,
  ) {
    const { begin, history, signal } = start;
    this.status = begin;
    this.history = history;
    this.#unfollow = signal ? onAbort(signal, () => this.abort(signal.reason)) : () => {};
  }

  /** Ends the turn. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Ends the run of the turn, and removes the listeners of its signals. */
  leave(): void {
    this.isRunning = false;
    this.#unfollow();
  }

  /** The waits of the run, if it is suspended. */
  get suspended(): SuspendedStatus | undefined {
    const { status } = this;
    const isSuspended = typeof status === 'object' && status.status === 'suspended' && !this.isRunning;
    return isSuspended ? status : undefined;
  }

  /** The suspended turn with its answers. */
  resumedWith(
    answered: { readonly answers: readonly Answer[]; readonly answeredBy?: unknown },
    resumedBy: 'answer' | 'abort',
  ): TurnStart {
    const { turn, scope, isCertain } = this.start;
    const begin = { ...(this.suspended as SuspendedStatus), status: 'answered', ...answered } as const;
    return { turn: { ...turn, resumedBy }, scope, begin, history: this.history, isCertain };
  }

  /** The run rejected: if its answers were refused, the turn stays suspended; all other errors end it. */
  fail(): void {
    const { begin } = this.start;
    const isRefused = this.status === begin && begin.status === 'answered';
    this.status = isRefused ? { status: 'suspended', state: begin.state, isKept: begin.isKept } : undefined;
  }

  /** Follows the steps of its run. */
  readonly onStep: NonNullable<RunDeps['onStep']> = (run, end) => {
    if (end?.status !== 'suspended') {
      this.history = new HistoryView(run.messages, this.history.from);
      const { toolCalls, iterations, usage } = run;
      const { length } = toolCalls;
      // Evaluated when a snapshot is made. Counts of the run after this step belong to the next one.
      const progress = (): TurnStatus => {
        const { messages: _, ...now } = progressOf(run);
        const calls = now.toolCalls.slice(0, length);
        return { status: 'running', progress: { ...now, toolCalls: calls, iterations, usage } };
      };
      this.status = end === undefined ? progress : undefined;
    }
    // With a store, the run is only safe there after it has ended.
    else if (end.state !== undefined && !this.hasStore)
      this.status = { status: 'suspended', state: end.state, isKept: false };
  };

  /** The run has ended, or waits for answers. */
  end(result: ToolLoopResult): void {
    if (result === this.#ended) return;
    this.#ended = result;
    const { state, status } = result;
    const messages = result.messages as Message[];
    this.history = new HistoryView(messages, this.history.from);
    const isKept = this.hasStore && status === 'suspended';
    this.status = state && { status: 'suspended', state, isKept };
    // Later turns append to the array of the run, so readers of the result receive a copy.
    const whole = new HistoryView(messages);
    Object.defineProperty(result, 'messages', {
      get: () => whole.messages,
      enumerable: true,
      configurable: true,
    });
  }

  /** The form for a snapshot; `undefined` once the run has ended. */
  stored(isClosing: boolean): StoredTurn | undefined {
    const standing = typeof this.status === 'function' ? this.status() : this.status;
    if (standing === undefined) return undefined;
    const { number, origin } = this.start.turn;
    const isAborted = standing.status !== 'suspended' && this.signal.aborted;
    // The aborted run removes itself from the store when it ends.
    const isFreed = isClosing && standing.status === 'answered';
    return { number, origin, isAborted, standing: isFreed ? { ...standing, isKept: false } : standing };
  }
}

/** A part of an array that only grows; it is copied when it is read. */
class HistoryView {
  readonly #to: number;
  #copy: readonly Message[] | undefined;

  /** Runs that start here append to `source`. Its messages before `from` are not part of the history. */
  constructor(
    readonly source: Message[],
    readonly from = 0,
  ) {
    this.#to = source.length;
  }

  get messages(): readonly Message[] {
    this.#copy ??= this.source.slice(this.from, this.#to);
    return this.#copy;
  }

  /**
   * The history with additional messages, after a system prompt. They are appended to the same array if it ends here
   * and starts with that prompt, because copying a long history takes longer than a turn.
   */
  extended(systemPrompt: string | undefined, said: readonly Message[]): HistoryView {
    const system: Message[] = systemPrompt === undefined ? [] : [{ role: 'system', content: systemPrompt }];
    const isAtEnd = this.#to === this.source.length && this.from === system.length;
    const isSame = isAtEnd && (systemPrompt === undefined || this.source[0]?.content === systemPrompt);
    const source = isSame ? this.source : system.concat(this.source.slice(this.from, this.#to));
    source.push(...said);
    return new HistoryView(source, system.length);
  }
}

/** Runs a turn until it ends or waits for answers. */
async function drive(
  { start, signal }: MemoryTurn,
  config: ConversationConfig,
  deps: RunDeps,
): Promise<ToolLoopResult> {
  const { begin, scope, history } = start;
  const throwUnlessAborted = (error: unknown): undefined => {
    if (!signal.aborted) throw error;
  };
  if (begin.status === 'answered' && begin.isKept && config.store !== undefined) {
    const { answers, answeredBy, state } = begin;
    const run = { store: config.store, runId: state.runId };
    const resumption = { answers, answeredBy, scope };
    // If two processes resume a run in the store, only one claims it. An aborted turn ends here in any case.
    const result = await driveStoredRun(config, run, { resumption, deps }).catch(throwUnlessAborted);
    if (result !== undefined) return result;
  }
  // An abort ends a turn even if its run cannot continue; then there is nothing to start.
  const runStart = await startOf(start, config).catch(throwUnlessAborted);
  return runStart === undefined ? abortedBefore(history.source, signal) : driveLoop(config, runStart, deps);
}

async function startOf(
  { begin, history, scope, isCertain }: TurnStart,
  config: ConversationConfig,
): Promise<RunStart> {
  if (begin.status !== 'running') {
    const { answers, answeredBy } = begin.status === 'answered' ? begin : { answers: [] };
    return { record: await resumeWith(config, begin.state, { answers, answeredBy, scope, isCertain }) };
  }
  const { progress, owner } = begin;
  checkOwner({ owner: progress?.owner ?? owner, isCertain }, scope);
  const messages = history.source;
  return progress === undefined ? { messages, isShared: true } : { record: { ...progress, messages } };
}

const RUNNING = 'a turn is running: wait for its end, or `idle()`';

function notReady(what: string, why: string): ToolwrightError {
  return new ToolwrightError('ConversationNotReady', `${what}, because ${why}.`);
}

/** Emits the message of a result for the user: `forUser`, unless it is silent or empty. */
function emitUserMessage(events: EventHub, { forUser, silent }: ToolResult, of: CompletedCall): void {
  if (!forUser || silent) return;
  const { tool, callId, taskId } = of;
  events.emit(withoutUndefined({ type: 'user-message', text: forUser, tool, callId, taskId }));
}

/** After the last message with all its answers; without `progress`, the model was not asked yet. */
interface RunningStatus {
  readonly status: 'running';
  readonly owner?: unknown;
  readonly progress?: Omit<RunProgress, 'messages'>;
}

/** At an open message with these answers: its calls have not all ended. `isKept`: the run is in the store. */
interface AnsweredStatus {
  readonly status: 'answered';
  readonly state: RunState;
  readonly answers: readonly Answer[];
  readonly answeredBy?: unknown;
  readonly isKept: boolean;
}

/** The turn waits for answers. `isKept`: the run is in the store. */
interface SuspendedStatus {
  readonly status: 'suspended';
  readonly state: RunState;
  readonly isKept: boolean;
}

/** The origin of a waiting turn, with its owner. */
type StoredOrigin = TurnOrigin & { readonly owner?: unknown };

/** The state from which a turn continues. */
type TurnStatus = RunningStatus | AnsweredStatus | SuspendedStatus;

/** A turn that has begun and is not over. */
interface StoredTurn {
  readonly number: number;
  readonly origin: TurnOrigin;
  /** It was aborted, and had not ended yet. */
  readonly isAborted: boolean;
  /** The state from which it continues. */
  readonly standing: TurnStatus;
}

/**
 * A conversation as plain JSON; `Conversation.restore` continues from it, in this process or another. It contains all
 * messages and arguments: protect it accordingly, and set a `stateSecret` if others could change it.
 */
export interface ConversationSnapshot {
  /** Version 1 has no provider items. */
  readonly version: 1 | 2;
  readonly id: string;
  /** A history in which every call has its answer; without the system prompt. */
  readonly messages: readonly Message[];
  /** The number of turns begun so far. */
  readonly turns: number;
  readonly turn?: StoredTurn;
  /** Waiting entries, in order of arrival. */
  readonly inbox: readonly StoredOrigin[];
  /** Work that was started and is not completed. */
  readonly tasks: readonly BackgroundTask[];
  /** The amounts spent by turns that have ended; only if they had a budget. */
  readonly spent?: Spending;
  /** As that of a {@link RunState}. */
  readonly signature?: string;
}

let checker: ResultChecker | undefined;

/** A snapshot, and whether its owners can be trusted because it cannot have been changed elsewhere. */
interface ValidSnapshot {
  readonly snapshot: ConversationSnapshot;
  readonly isCertain: boolean;
}

/**
 * Validates the snapshot of a conversation, which may come from outside, and returns a copy.
 *
 * @throws ToolwrightError `InvalidState` (515) if it is not a snapshot, or if it was changed: with a secret in any
 * part, without a secret as far as that can be detected.
 */
export function validateSnapshot(snapshot: unknown, secret: string | undefined): ValidSnapshot {
  checker ??= createResultChecker(SNAPSHOT_SCHEMA);
  const faults = checker(snapshot);
  if (faults.length > 0) {
    const problems = faults.slice(0, 5).map(({ path, message }) => `${path || 'it'} ${message}`);
    throw invalid(`This is not a snapshot of a conversation of this version: ${problems.join('; ')}.`);
  }
  const read = JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot;
  const [fault] = historyFaults(read.messages);
  if (fault !== undefined) throw invalid(`The history of the snapshot is invalid: ${fault.problem}.`);
  const isCertain = isSignedWith(read, secret);
  if (secret !== undefined && !isCertain)
    throw invalid('The snapshot of the conversation was changed, or signed with another secret.');
  const status = read.turn?.standing;
  if (status === undefined || status.status === 'running') return { snapshot: read, isCertain };
  const { messages } = validateState(status.state, secret).state;
  if (messages.length < read.messages.length)
    throw invalid('The snapshot of the conversation was changed: its suspended run has another history.');
  return { snapshot: read, isCertain };
}

function invalid(message: string): ToolwrightError {
  return new ToolwrightError('InvalidState', message);
}

const ORIGIN: JsonSchema = {
  type: 'object',
  anyOf: [
    object({ kind: { const: 'prompt' }, content: { type: ['string', 'array'] } }),
    object({ kind: { const: 'completion' }, tool: TEXT_SCHEMA, callId: TEXT_SCHEMA, text: TEXT_SCHEMA }),
    object({ kind: { const: 'continue' } }),
  ],
};

const STATE: JsonSchema = { type: 'object' };
const FLAG: JsonSchema = { type: 'boolean' };

/** The states in it are checked like those of runs. */
const STATUS: JsonSchema = {
  type: 'object',
  anyOf: [
    {
      type: 'object',
      properties: { status: { const: 'running' }, progress: PROGRESS },
      required: ['status'],
    },
    object({ status: { const: 'answered' }, state: STATE, answers: list({ type: 'object' }), isKept: FLAG }),
    object({ status: { const: 'suspended' }, state: STATE, isKept: FLAG }),
  ],
};

const TURN = object({ number: COUNT_SCHEMA, origin: ORIGIN, isAborted: FLAG, standing: STATUS });

const SNAPSHOT = object({
  version: { enum: [1, 2] },
  id: TEXT_SCHEMA,
  messages: MESSAGES,
  turns: COUNT_SCHEMA,
  inbox: list(ORIGIN),
  tasks: list(
    object({
      id: TEXT_SCHEMA,
      callId: TEXT_SCHEMA,
      tool: TEXT_SCHEMA,
      status: { enum: ['waiting', 'running'] },
    }),
  ),
});

/** The schema of a conversation's snapshot, which may come from outside. */
const SNAPSHOT_SCHEMA: JsonSchema = {
  ...SNAPSHOT,
  properties: { ...(SNAPSHOT.properties as object), turn: TURN },
};
