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
  #isRunning = false;
  /** Turns are being processed. */
  #isProcessing = false;
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
    return (this.#turn?.history ?? this.#history).messages;
  }

  /** The waits of the open turn, if it is suspended. */
  get suspended(): SuspendedStatus | undefined {
    return this.#isRunning ? undefined : this.#turn?.suspended;
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
    if (this.#isRunning) throw notReady('It was not changed', RUNNING);
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
    const answeredBy = plainJson(options.answeredBy);
    const checking = resumeWith(this.config, suspended.state, {
      answers,
      answeredBy,
      // A given scope must contain the owner, too.
      scope: scope ?? turn.scope,
      // For a run in the store, the stored state is authoritative.
      isCertain: turn.isCertain || suspended.isKept,
      isTrial: true,
    });
    const take = (): Promise<ToolLoopResult> => {
      // The turn was answered or aborted while edited arguments were checked.
      if (this.suspended !== suspended || this.#isClosed) throw nothingAsked();
      const outcome = Promise.withResolvers<ToolLoopResult>();
      const parts = { scope: this.#scopeOf(turn.scope, scope), signal: anySignal(signal, scope?.signal) };
      this.#start(this.#open({ ...turn.resumedWith({ answers, answeredBy }, 'answer'), ...parts, outcome }));
      return outcome.promise;
    };
    if (!(checking instanceof Promise)) return take();
    const refuse = (error: unknown): never => {
      const anew = askedAnew(error, this.config.stateSecret);
      // For a run in the store, the process that claims it requests the approval again.
      if (anew !== undefined && !suspended.isKept && this.suspended === suspended)
        turn.status = { ...suspended, state: anew };
      throw error;
    };
    return checking.then(take, refuse);
  }

  abort(reason: unknown): void {
    const turn = this.#turn;
    if (turn === undefined || this.suspended === undefined) {
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

  snapshot(turn: StoredTurn | undefined = this.#turn?.stored()): ConversationSnapshot {
    const { id, scope, stateSecret: secret } = this.config;
    const inbox = Array.from(
      this.#inbox,
      ({ origin, scope: { owner } }): StoredOrigin => (owner === undefined ? origin : { ...origin, owner }),
    );
    const isOwned = [scope, this.#turn?.scope, ...inbox].some((named) => named?.owner !== undefined);
    const { messages, tasks } = this;
    const spent = this.#spent;
    const snapshot = { version: 2, id, messages, turns: this.#count, turn, inbox, tasks, spent };
    return signState(JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot, { secret, isOwned });
  }

  /** Continues from a snapshot, in the next turn of the event loop. */
  restore({ snapshot: { turns, turn, inbox, tasks, spent }, isCertain }: ValidSnapshot): void {
    this.#count = turns;
    this.#spent = spent;
    this.#isHeld = true;
    const scope = this.#scopeOf(this.config.scope);
    const refused: { readonly origin: TurnOrigin; readonly error: unknown }[] = [];
    for (const { owner, ...origin } of inbox) {
      try {
        checkOwner({ owner, isCertain }, scope);
        this.#add({ origin, scope });
      } catch (error) {
        refused.push({ origin, error });
      }
    }
    const lost = tasks.map((task) => ({ task, result: interruptedResult(task.tool) }));
    for (const { task, result } of lost) {
      const { tool, callId, id: taskId } = task;
      this.#add({ origin: completionOf({ tool, callId, taskId }, result), scope });
    }
    if (turn !== undefined) {
      const { number, origin, isAborted, standing: begin } = turn;
      const resumedBy = begin.status === 'suspended' ? {} : { resumedBy: 'restore' as const };
      const history = this.#history;
      const restored = this.#open({
        turn: { number, origin, ...resumedBy },
        scope,
        begin,
        history,
        isCertain,
      });
      if (isAborted) restored.abort(new DOMException('The turn was aborted.', 'AbortError'));
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
      if (restored !== undefined && restored === this.#turn && this.#isRunning) this.#start(restored);
      else this.#work();
    });
  }

  /** Stops new turns, drops waiting entries and aborts running ones; the snapshot shows none of this. */
  close(): ConversationSnapshot {
    const stored = this.#turn?.stored();
    // The aborted run removes itself from the store when it ends.
    const standing = stored?.standing.status === 'answered' && { ...stored.standing, isKept: false };
    const snapshot = this.snapshot(stored && standing ? { ...stored, standing } : stored);
    this.#isClosed = true;
    const closed = new DOMException('The conversation was closed.', 'AbortError');
    for (const entry of this.#inbox) {
      entry.unfollow();
      entry.outcome?.resolve(abortedBefore(this.messages, AbortSignal.abort(closed)));
    }
    this.#inbox.clear();
    for (const { id } of this.tasks) this.cancel(id, 'the conversation was closed');
    if (this.#isRunning && !this.#isHeld) this.#turn?.abort(closed);
    else this.#endTurn();
    this.#notifyIdle();
    return snapshot;
  }

  /** A turn that has started continues until its end after the conversation is closed. */
  get #isStopped(): boolean {
    return (this.#isHeld || this.#isClosed) && !this.#turn?.hasStarted;
  }

  #begin(entry: InboxEntry): void {
    const { origin, scope, signal, outcome, within, unfollow } = entry;
    this.#inbox.delete(entry);
    unfollow();
    this.#count += 1;
    const said = turnMessage(origin);
    const history = this.#history.extended(this.config.systemPrompt, said === undefined ? [] : [said]);
    const begin = withoutUndefined({ status: 'running' as const, owner: scope.owner });
    within(() => {
      const turn = { number: this.#count, origin };
      this.#start(this.#open({ turn, scope, signal, begin, history, isCertain: true, outcome }));
    });
  }

  /** Runs the open turn, and the turns that are opened when it ends. */
  async #process(): Promise<void> {
    // The caller that opened the turn continues first.
    await Promise.resolve();
    for (let turn = this.#turn; turn && this.#isRunning && !this.#isStopped; turn = this.#turn) {
      const running = turn;
      try {
        const result = await running.within(() => this.#run(running));
        if (result.state === undefined) this.#spent = addSpending(this.#spent, result.spent);
        this.#leave(running, () => {
          this.events.emit({ type: 'turn-end', turn: running.turn, result });
          running.outcome?.resolve(result);
        });
      } catch (error) {
        this.#fail(running, error);
      }
    }
  }

  /** If the answers were refused, the turn stays suspended; all other errors end it. */
  #fail(turn: MemoryTurn, error: unknown): void {
    turn.status = turn.untouched;
    this.#leave(turn, () => {
      this.events.emit({ type: 'turn-end', turn: turn.turn, error });
      if (turn.outcome === undefined) this.#logFailure('Turn failed', error);
      else turn.outcome.reject(error);
    });
  }

  /** Starts the next turn if one can run. */
  #work(): void {
    const [entry] = this.#inbox;
    if (this.#turn === undefined && !this.#isStopped && entry !== undefined) {
      this.#begin(entry);
      return;
    }
    this.#notifyIdle();
    if (this.#isProcessing || !this.#isRunning || this.#isStopped) return;
    this.#isProcessing = true;
    void this.#process().then(() => {
      this.#isProcessing = false;
      this.#work();
    });
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

  /** Opens a turn, replacing the suspended turn that it continues; it runs or is suspended. */
  #open(parts: Omit<ConstructorParameters<typeof MemoryTurn>[0], 'hasStore'>): MemoryTurn {
    const { signal, scope, store } = this.config;
    const joined = anySignal(signal, scope?.signal, parts.signal);
    const turn = new MemoryTurn({ ...parts, signal: joined, hasStore: store !== undefined });
    this.#turn = turn;
    this.#isRunning = turn.suspended === undefined;
    return turn;
  }

  /** Starts the open turn and notifies listeners immediately. */
  #start(turn: MemoryTurn): void {
    turn.hasStarted = true;
    this.#unsubscribeTasks ??= this.#taskQueue.subscribe((event) => {
      if (event.task.conversationId !== this.config.id) return;
      this.events.emit(event);
      if (event.type !== 'task-end') return;
      this.#restTasks();
      this.#notifyIdle();
    });
    this.events.emit({ type: 'turn-start', turn: turn.turn });
    this.#work();
  }

  async #run(turn: MemoryTurn): Promise<ToolLoopResult> {
    const { begin, signal, history, scope } = turn;
    const { systemPrompt, store } = this.config;
    // A suspended run keeps its system prompt.
    const promptLength =
      begin.status === 'running'
        ? Number(systemPrompt !== undefined)
        : begin.state.messages.length - history.messages.length;
    const running = new Set<string>();
    const sink = (event: LoopEvent): void => {
      if (event.type === 'call-start') running.add(event.callId);
      if (event.type === 'call-end' || event.type === 'call-suspended') running.delete(event.callId);
      // Progress of work that outlives its call is reported as `task-progress`.
      if (event.type === 'call-progress' && !running.has(event.callId)) return;
      if (event.type === 'run-end') turn.end(event.result, promptLength);
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
      onStep: turn.stepListener(promptLength),
    };
    const drive = async (): Promise<ToolLoopResult> => {
      // If two processes resume a run in the store, only one claims it. An aborted turn ends here in any case.
      if (begin.status === 'answered' && begin.isKept && store !== undefined) {
        const { answers, answeredBy, state } = begin;
        const resumption = { answers, answeredBy, scope };
        try {
          return await driveStoredRun(config, { store, runId: state.runId }, { resumption, deps });
        } catch (error) {
          if (!signal.aborted) throw error;
        }
      }
      let start: RunStart;
      try {
        start = await startOf(turn, config);
      } catch (error) {
        // An abort ends a turn even if its run cannot continue; then there is nothing to start.
        if (!signal.aborted) throw error;
        return abortedBefore((begin.status === 'running' ? history : begin.state).messages, signal);
      }
      return driveLoop(config, start, deps);
    };
    const result = await drive();
    turn.end(result, promptLength);
    return result;
  }

  /** Ends the run of a turn and calls `report`; the work that it has started is no longer aborted with it. */
  #leave(turn: MemoryTurn, report: () => void): void {
    turn.leave();
    this.#isRunning = false;
    if (turn.suspended === undefined) this.#endTurn();
    turn.within(() => {
      report();
      // A listener may have begun another turn.
      this.#restTasks();
      this.#work();
    });
  }

  /** Closes the open turn, though its run may not have ended. */
  #endTurn(): void {
    this.#history = this.#turn?.history ?? this.#history;
    this.#turn?.leave();
    this.#turn = undefined;
    this.#isRunning = false;
  }

  /** Unsubscribes from the queue if no turn runs and no work continues. */
  #restTasks(): void {
    if (this.#isRunning || this.tasks.length > 0) return;
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
    const isTurnAtRest =
      !this.#isRunning && !this.#isHeld && (this.#turn !== undefined || this.#inbox.size === 0);
    if (this.#idleWaiters.length === 0 || !isTurnAtRest) return;
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

interface StartedTurn {
  readonly turn: Turn;
  /** Without a signal, because work that the turn starts outlives it. */
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
  /** The state from which the turn continues in this process. */
  readonly begin: TurnStatus;
  /** The history with the origin of the turn. */
  readonly history: HistoryView;
  /** Suspended runs of the turn are in a store. */
  readonly hasStore: boolean;
  /** The owner of the turn is certain: it began in this process, or its snapshot is signed. */
  readonly isCertain: boolean;
  readonly outcome?: Outcome | undefined;
}

/** A turn that has begun in this process, its progress, and its state for a snapshot. */
class MemoryTurn {
  readonly turn: Turn;
  readonly scope: CallScope;
  readonly begin: TurnStatus;
  readonly isCertain: boolean;
  readonly outcome: Outcome | undefined;
  readonly within = AsyncLocalStorage.snapshot();
  /** The history up to the last message whose calls all have their answers. */
  history: HistoryView;
  /** The state for a snapshot; `undefined` once the run has ended. */
  status: TurnStatus | (() => TurnStatus) | undefined;
  /** In this process. */
  hasStarted = false;
  readonly #stop = new AbortController();
  #ended: ToolLoopResult | undefined;
  readonly #hasStore: boolean;
  readonly #unfollow: () => void;

  constructor({ turn, scope, signal, begin, history, hasStore, isCertain, outcome }: StartedTurn) {
    this.turn = turn;
    this.scope = scope;
    this.begin = begin;
    this.status = begin;
    this.history = history;
    this.isCertain = isCertain;
    this.outcome = outcome;
    this.#hasStore = hasStore;
    this.#unfollow = signal ? onAbort(signal, () => this.abort(signal.reason)) : () => {};
  }

  /** Ends the turn. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Removes the listeners of its signals. */
  leave(): void {
    this.#unfollow();
  }

  /** The waits of the run, if it has any. */
  get suspended(): SuspendedStatus | undefined {
    const { status } = this;
    return typeof status === 'object' && status.status === 'suspended' ? status : undefined;
  }

  /** The suspended turn with its answers. */
  resumedWith(
    answered: { readonly answers: readonly Answer[]; readonly answeredBy?: unknown },
    resumedBy: 'answer' | 'abort',
  ): Omit<StartedTurn, 'hasStore' | 'signal'> {
    const { turn, scope, history, isCertain } = this;
    const suspended = this.suspended as SuspendedStatus;
    const begin = { ...suspended, status: 'answered', ...answered } as const;
    return { turn: { ...turn, resumedBy }, scope, begin, history, isCertain };
  }

  /** The state of the turn before its answers, if the run has not continued with them. */
  get untouched(): SuspendedStatus | undefined {
    const { begin, status } = this;
    if (status !== begin || begin.status !== 'answered') return undefined;
    return { status: 'suspended', state: begin.state, isKept: begin.isKept };
  }

  /**
   * Follows the steps of its run. `promptLength`: the number of messages of the run that are not part of the history.
   */
  stepListener(promptLength: number): NonNullable<RunDeps['onStep']> {
    return (run, end) => {
      if (end?.status !== 'suspended') {
        this.history = new HistoryView(run.messages, promptLength);
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
      else if (end.state !== undefined && !this.#hasStore)
        this.status = { status: 'suspended', state: end.state, isKept: false };
    };
  }

  /** The run has ended, or waits for answers. */
  end(result: ToolLoopResult, promptLength: number): void {
    if (result === this.#ended) return;
    this.#ended = result;
    const { state, status } = result;
    const messages = result.messages as Message[];
    this.history = new HistoryView(messages, promptLength);
    const isKept = this.#hasStore && status === 'suspended';
    this.status = state && { status: 'suspended', state, isKept };
    // Later turns append to the array of the run, so readers of the result receive a copy.
    const { length } = messages;
    let copy: Message[] | undefined;
    const get = (): Message[] => {
      copy ??= messages.slice(0, length);
      return copy;
    };
    Object.defineProperty(result, 'messages', { get, enumerable: true, configurable: true });
  }

  /** The form for a snapshot; `undefined` once the run has ended. */
  stored(): StoredTurn | undefined {
    const status = typeof this.status === 'function' ? this.status() : this.status;
    if (status === undefined) return undefined;
    const { number, origin } = this.turn;
    const isAborted = status.status !== 'suspended' && this.signal.aborted;
    return { number, origin, isAborted, standing: status };
  }
}

/** A part of an array that only grows; it is copied when it is read. */
class HistoryView {
  readonly #to: number;
  #copy: readonly Message[] | undefined;

  /** Messages before `from` are not part of the history. */
  constructor(
    private readonly source: Message[],
    private readonly from = 0,
  ) {
    this.#to = source.length;
  }

  get messages(): readonly Message[] {
    this.#copy ??= Object.freeze(this.source.slice(this.from, this.#to));
    return this.#copy;
  }

  /** The messages for a run that starts here, which appends to them. */
  get forRun(): readonly Message[] {
    return this.source;
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

async function startOf(
  { begin, history, scope, isCertain }: MemoryTurn,
  config: ConversationConfig,
): Promise<RunStart> {
  if (begin.status !== 'running') {
    const { answers, answeredBy } = begin.status === 'answered' ? begin : { answers: [] };
    return { record: await resumeWith(config, begin.state, { answers, answeredBy, scope, isCertain }) };
  }
  checkOwner({ owner: begin.progress?.owner ?? begin.owner, isCertain }, scope);
  const messages = history.extended(config.systemPrompt, []).forRun;
  return begin.progress === undefined
    ? { messages, isShared: true }
    : { record: { ...begin.progress, messages } };
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
