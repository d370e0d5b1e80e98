import { AsyncLocalStorage } from 'node:async_hooks';
import { addSpending, type Spending } from '../../core/contract/budget.js';
import {
  type Answer,
  type CallScope,
  type PendingCall,
  SCOPE_OPTION,
  scopeFields,
} from '../../core/contract/call.js';
import { type Message, MODEL, PROVIDER, type UserMessage } from '../../core/contract/llm-provider.js';
import type { BackgroundTask } from '../../core/contract/tool-context.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import {
  checkArguments,
  checkOptions,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { anySignal, callListener, onAbort } from '../../core/kernel/async.js';
import { omitFields, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { Listeners } from '../../core/kernel/listeners.js';
import {
  BOOLEAN,
  FILLED_TEXT,
  FUNCTION,
  JSON_VALUE,
  LIST,
  optionTable,
  SIGNAL,
  TEXT,
} from '../../core/kernel/options.js';
import { logFailure } from '../call/failure-log.js';
import { type CompletedCall, completionOf } from '../call/job-dispatch.js';
import { interruptedResult } from '../call/result-text.js';
import type { TaskQueue } from '../call/task-queue.js';
import { registryOf, type ToolRegistry } from '../call/tool-registry.js';
import { abortedBefore, driveLoop } from '../loop/drive.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';
import { givenHistory, historyFaults } from '../loop/given-history.js';
import { type RunDeps, type RunStart, resultsOfConversation } from '../loop/loop-run.js';
import { LOOP_ALIASES, LOOP_RULES } from '../loop/options.js';
import { askedAnew, resumeWith } from '../loop/resume.js';
import { checkOwner } from '../loop/run-owner.js';
import { driveStoredRun } from '../loop/stored-run.js';
import { progressOf, signState } from '../loop/suspend.js';
import { type ConversationSnapshot, validateSnapshot } from './conversation-snapshot.js';
import {
  type ConversationEvent,
  type ConversationListener,
  callOfContext,
  nothingAsked,
  type Turn,
  type TurnOrigin,
  turnMessage,
  userMessage,
} from './events.js';
import {
  type AnswerOptions,
  CONTENT,
  type ConversationChanges,
  type ConversationConfig,
  type IdleOptions,
  type TurnOptions,
} from './options.js';

type StoredTurn = NonNullable<ConversationSnapshot['turn']>;

/** The state from which a turn continues. */
type TurnStatus = StoredTurn['standing'];

type SuspendedStatus = Extract<TurnStatus, { readonly status: 'suspended' }>;

/** An entry that waits for its turn. */
interface InboxEntry {
  readonly origin: TurnOrigin;
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
  /** Without it, only `turn-end` reports the outcome of the turn. */
  readonly outcome?: TurnOutcome;
  /** Runs the turn in the `AsyncLocalStorage` of its caller, not in that of the previous turn. */
  readonly within: <Result>(run: () => Result) => Result;
  /** Removes the listener of the signal. */
  readonly unfollow: () => void;
}

/**
 * A conversation with a model. It contains the history, the system prompt, the tools and an inbox. Prompts and
 * completions of started work are processed in order of arrival, one turn at a time. While a run is suspended, they
 * wait until it is answered or aborted.
 *
 * `subscribe` reports all events; without a listener, the model's text is not streamed.
 *
 * @throws InvalidOptionsError (521) and ToolDeclarationError (502) for mistakes of the author, as in `runToolLoop`.
 *
 * @example
 * ```ts
 * const conversation = new Conversation({ provider, model, tools, systemPrompt: 'Be brief.' });
 * conversation.subscribe((event) => {
 *   if (event.type === 'text-delta') process.stdout.write(event.text);
 *   if (event.type === 'user-message') console.log(`${event.tool}: ${event.text}`);
 * });
 * const { status } = await conversation.prompt('Which orders are open?');
 * if (status === 'suspended') {
 *   await conversation.answer(conversation.pending.map(({ id }) => ({ id, approved: true })));
 * }
 * await conversation.idle({ tasks: true });
 * ```
 */
export class Conversation {
  /** Also the `conversationId` of tool contexts. */
  readonly id: string;
  #config: ConversationConfig & { readonly tools: ToolRegistry };
  readonly #listeners = new Listeners<ConversationEvent>();
  /** Events to emit, in order; listeners may cause more of them. */
  readonly #unsent: ConversationEvent[] = [];
  #isEmitting = false;
  readonly #taskQueue: TaskQueue;
  /** In order of arrival. */
  readonly #inbox = new Set<InboxEntry>();
  /** The messages before the open turn. */
  #history: HistoryView;
  /** The running or suspended turn. */
  #turn: MemoryTurn | undefined;
  /** The number of turns begun so far. */
  #count = 0;
  /** The number of calls of `answer` whose answers are still being checked. */
  #checking = 0;
  /** By turns that have ended. */
  #spent: Spending | undefined;
  /** No turn starts, because the conversation was just restored. */
  #isHeld = false;
  /** Its snapshot when it was closed. */
  #closed: ConversationSnapshot | undefined;
  readonly #idleWaiters = new Set<{ readonly tasks: boolean; readonly resolve: () => void }>();
  #unsubscribeTasks: (() => void) | undefined;

  constructor(config: ConversationConfig) {
    const care = config?.history === 'refuse' ? 'refuse' : 'repair';
    refuseOptions([
      ...invalidOptions(config, CONVERSATION_OPTIONS),
      ...(Array.isArray(config?.messages) ? historyFaults(config.messages, care) : []),
    ]);
    const { id = crypto.randomUUID() } = config;
    const messages = givenHistory({ messages: config.messages ?? [] }, config.logger);
    this.id = id;
    const tools = registryOf(config.tools);
    this.#config = { ...config, tools };
    this.#history = new HistoryView([...messages]);
    this.#taskQueue = config.tasks ?? tools.tasks;
  }

  /**
   * Continues a conversation from its snapshot, in this process or another. Pass `config` again, except `id` and
   * `messages`, which come from the snapshot. Work starts in the next turn of the event loop, so that listeners can
   * subscribe first.
   *
   * - Work that was waiting or running completes once, with the error `TaskInterrupted` (520), in its own turn.
   * - An interrupted turn continues after the last message whose calls all had their answers: later calls may be
   *   executed a second time. `turn-end` reports the outcome.
   * - Waiting entries are processed in order, in the scope of `config`: a turn of another owner ends with the error
   *   `RunNotAllowed` (523) and leaves no trace except `turn-end`.
   * - A suspended run can be answered with the same ids, and keeps its prompt.
   *
   * Restore a snapshot only once, and guard against two processes restoring it. With `config.store`, if two
   * conversations answer the same suspended run, the first continues; the other's `answer` rejects with `RunClaimed`
   * or `RunNotFound`.
   *
   * @throws ToolwrightError `InvalidState` (515) for a value that is not a snapshot, was changed, or has another
   * version.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * const text = JSON.stringify(conversation);
   * // Later, in another process:
   * const restored = Conversation.restore({ provider, model, tools }, JSON.parse(text));
   * restored.subscribe((event) => console.log(event.type));
   * await restored.idle();
   * ```
   */
  static restore(config: ConversationConfig, snapshot: ConversationSnapshot): Conversation {
    checkOptions(config, CONVERSATION_OPTIONS);
    const valid = validateSnapshot(snapshot, config.stateSecret);
    const { id, messages } = valid.snapshot;
    const conversation = new Conversation({ ...config, id, messages });
    conversation.#restore(valid);
    return conversation;
  }

  /**
   * The history, without the system prompt. Every call in it always has its answer, so during a turn it ends with the
   * last such message. Frozen, and replaced by a new array when it grows.
   */
  get messages(): readonly Message[] {
    return Object.freeze((this.#turn?.history ?? this.#history).messages);
  }

  /** The waits of a suspended run; otherwise empty. */
  get pending(): readonly PendingCall[] {
    return this.#suspended?.state.pending ?? [];
  }

  /** The amounts spent by its turns, including a suspended one; only if they have a budget. */
  get spent(): Spending | undefined {
    return addSpending(this.#spent, this.#suspended?.state.spent);
  }

  /** Work that tools have started and that is not completed, in the order in which it was started. */
  get tasks(): readonly BackgroundTask[] {
    return this.#taskQueue.tasks.filter(({ conversationId }) => conversationId === this.id);
  }

  /**
   * Sends a message to the model: text, or parts in the provider's form. Resolves with the result of its turn, as
   * `runToolLoop` does, also if the turn is suspended. A tool that awaits a prompt of its own conversation waits for
   * itself.
   *
   * @throws InvalidOptionsError (521) for content that is neither text nor a list of parts, and for invalid options.
   */
  async prompt(content: UserMessage['content'], options: TurnOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    refuseOptions([
      ...invalidArguments({ of: TURN_OPTIONS.of, given: { content }, rules: { content: CONTENT } }),
      ...invalidOptions(options, TURN_OPTIONS),
    ]);
    const own = typeof content === 'string' ? content : [...content];
    return this.#enter({ kind: 'prompt', content: own }, options);
  }

  /**
   * Continues from the history without a new message: after a turn that failed, was aborted or reached its limit.
   * Otherwise like `prompt`.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) if a turn runs, waits for answers or is about to start, or
   * if the last message is the model's.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * let run = await conversation.prompt('Which orders are open?');
   * if (run.status === 'failed') run = await conversation.continue();
   * ```
   */
  async continue(options: TurnOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    checkOptions(options, TURN_OPTIONS);
    this.#checkFree('It was not continued');
    if (this.#inbox.size > 0) throw notReady('It was not continued', 'queued prompts come first');
    const role = this.messages.at(-1)?.role;
    if (role !== 'user' && role !== 'tool') {
      const end = role === undefined ? 'there are no messages yet' : 'the last message is the model’s answer';
      throw notReady('It was not continued', `${end}: use \`prompt\``);
    }
    return this.#enter({ kind: 'continue' }, options);
  }

  /**
   * Changes the provider, model, tools or system prompt, starting with the next turn. A suspended run keeps its model
   * and its system prompt; its tools are looked up again. Snapshots do not contain these settings; pass them to
   * `restore`.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) while a turn runs; InvalidOptionsError (521) and
   * ToolDeclarationError (502) as the constructor. Nothing changes then.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * conversation.update({ model: 'gpt-5-mini', systemPrompt: 'Answer in one sentence.' });
   * ```
   */
  update(changes: ConversationChanges): void {
    this.#checkOpen();
    checkOptions(changes, CHANGES);
    const { tools, systemPrompt } = changes;
    const registry = tools === undefined ? this.#config.tools : registryOf(tools);
    if (this.#turn !== undefined && this.#suspended === undefined)
      throw notReady('It was not changed', RUNNING);
    // The queue stays, so that running work is still listed and can be cancelled.
    this.#config = {
      ...this.#config,
      ...withoutUndefined(changes),
      ...(systemPrompt === '' ? { systemPrompt: undefined } : {}),
      tools: registry,
      tasks: this.#taskQueue,
    };
  }

  /**
   * Replaces the history by the result of `change`, which receives a copy. The new history must be valid: edit a call
   * together with its answers.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) while a turn runs or waits for answers; InvalidOptionsError
   * (521), naming every place, for an invalid history. Nothing changes then.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * conversation.editHistory((messages) => messages.slice(0, messages.findLastIndex(({ role }) => role === 'user')));
   * ```
   */
  editHistory(change: (messages: Message[]) => readonly Message[]): void {
    this.#checkOpen();
    checkArguments({ of: 'Conversation.editHistory', given: { change }, rules: { change: FUNCTION } });
    this.#checkFree('Its history was not edited');
    const edited = change([...this.messages]);
    const where = 'Conversation.editHistory';
    refuseOptions(historyFaults(edited, 'refuse').map((fault) => ({ ...fault, where })));
    this.#history = new HistoryView([...edited]);
  }

  /**
   * Answers pending calls; the run continues, or stays suspended while answers are missing. Resolves with the result
   * of the resumed run. `options.scope` overrides the scope of the turn and must be its owner's; set
   * `options.answeredBy` if another user answers for the owner.
   *
   * @throws ToolwrightError `InvalidAnswer` (514) if nothing is pending or an answer is wrong, `RunNotAllowed` (523)
   * for the scope of another owner, and with a `store` `RunClaimed` (517) and `RunNotFound` (516). Nothing changes
   * then.
   */
  async answer(answers: readonly Answer[], options: AnswerOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    checkOptions(options, ANSWER_OPTIONS);
    const { signal, scope } = options;
    const suspended = this.#suspended;
    const turn = this.#turn;
    if (turn === undefined || suspended === undefined) throw nothingAsked();
    const { start } = turn;
    const answeredBy = plainJson(options.answeredBy);
    const checking = resumeWith(this.#config, suspended.state, {
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
      if (this.#suspended !== suspended || this.#closed) throw nothingAsked();
      const outcome = Promise.withResolvers<ToolLoopResult>();
      const parts = { scope: this.#scopeOf(start.scope, scope), signal: anySignal(signal, scope?.signal) };
      this.#start(this.#open({ ...turn.resumedWith({ answers, answeredBy }, 'answer'), ...parts, outcome }));
      return outcome.promise;
    };
    const refuse = (error: unknown): never => {
      const anew = askedAnew(error, this.#config.stateSecret);
      // For a run in the store, the process that claims it requests the approval again.
      if (anew !== undefined && !suspended.isKept && this.#suspended === suspended)
        turn.status = { ...suspended, state: anew };
      throw error;
    };
    if (!(checking instanceof Promise)) return take();
    this.#checking += 1;
    const result = checking.then(take, refuse);
    // After `take` has started the turn.
    const endCheck = (): void => {
      this.#checking -= 1;
      this.#notifyIdle();
    };
    void checking.then(endCheck, endCheck);
    return result;
  }

  /**
   * Calls a listener for all later events, immediately and in order; the returned function removes it. Errors of a
   * listener have no effect.
   */
  subscribe(listener: ConversationListener): () => void {
    checkArguments({ of: 'Conversation.subscribe', given: { listener }, rules: { listener: FUNCTION } });
    return this.#listeners.add(listener);
  }

  /**
   * Ends the running or suspended turn with status `aborted`: its open calls are answered as aborted, and waiting
   * entries are processed next. Work that a running turn has started is aborted too; work of a finished or suspended
   * turn continues (`cancel`). Does nothing between turns.
   */
  abort(reason?: unknown): void {
    const turn = this.#turn;
    if (turn?.suspended === undefined) {
      turn?.stop.abort(reason);
      return;
    }
    const resumed = this.#open(turn.resumedWith({ answers: [] }, 'abort'));
    resumed.stop.abort(reason);
    this.#start(resumed);
  }

  /**
   * Cancels work that a tool has started: it completes with the error `TaskCancelled` (519). Returns `false` if there
   * is no such work.
   */
  cancel(taskId: string, reason?: string): boolean {
    return this.tasks.some(({ id }) => id === taskId) && this.#taskQueue.cancel(taskId, reason);
  }

  /**
   * Resolves when no turn runs and none can start: while a run is suspended, waiting entries cannot start. With
   * `{ tasks: true }`, also waits until all started work is completed, and the turns of its completions are over.
   */
  async idle(options: IdleOptions = {}): Promise<void> {
    checkOptions(options, IDLE_OPTIONS);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idleWaiters.add({ tasks: options.tasks ?? false, resolve });
    this.#notifyIdle();
    return promise;
  }

  /** The snapshot for `restore`: independent plain JSON. The conversation continues. */
  toJSON(): ConversationSnapshot {
    return this.#closed ?? this.#snapshot({ isClosing: false });
  }

  /**
   * Ends the conversation in this process and returns the snapshot to restore it from: running turns are aborted and
   * waiting entries dropped, but the snapshot still contains them. Listeners still receive the end events.
   */
  close(): ConversationSnapshot {
    if (this.#closed !== undefined) return this.#closed;
    this.#closed = this.#snapshot({ isClosing: true });
    const closed = new DOMException('The conversation was closed.', 'AbortError');
    for (const entry of this.#inbox) {
      entry.unfollow();
      entry.outcome?.resolve(abortedBefore(this.messages, AbortSignal.abort(closed)));
    }
    this.#inbox.clear();
    for (const { id } of this.tasks) this.cancel(id, 'the conversation was closed');
    if (this.#turn?.isRunning) this.#turn.stop.abort(closed);
    else this.#endTurn();
    this.#notifyIdle();
    return this.#closed;
  }

  #checkOpen(): void {
    if (this.#closed !== undefined)
      throw new ToolwrightError('RunAborted', 'The conversation was closed in this process.');
  }

  /** The waits of the open turn, if it is suspended. */
  get #suspended(): SuspendedStatus | undefined {
    return this.#turn?.suspended;
  }

  #enter(origin: TurnOrigin, { signal, scope }: TurnOptions): Promise<ToolLoopResult> {
    const stop = anySignal(signal, scope?.signal);
    if (stop?.aborted) return Promise.resolve(abortedBefore(this.messages, stop));
    const outcome = Promise.withResolvers<ToolLoopResult>();
    this.#add({ origin, scope: this.#scopeOf(this.#config.scope, scope), signal: stop, outcome });
    this.#work();
    return outcome.promise;
  }

  #snapshot({ isClosing }: { readonly isClosing: boolean }): ConversationSnapshot {
    const { scope, stateSecret: secret } = this.#config;
    const turn = this.#turn;
    const inbox = Array.from(
      this.#inbox,
      ({ origin, scope: { owner } }): ConversationSnapshot['inbox'][number] =>
        owner === undefined ? origin : { ...origin, owner },
    );
    const isOwned = [scope, turn?.start.scope, ...inbox].some((named) => named?.owner !== undefined);
    const snapshot = {
      version: 2,
      id: this.id,
      messages: this.messages,
      turns: this.#count,
      turn: turn?.stored(isClosing),
      inbox,
      tasks: this.tasks,
      spent: this.#spent,
    };
    return signState(JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot, { secret, isOwned });
  }

  /** Continues from a snapshot, in the next turn of the event loop. */
  #restore({
    snapshot: { turns, turn, inbox, tasks, spent },
    isCertain,
  }: ReturnType<typeof validateSnapshot>): void {
    this.#count = turns;
    this.#spent = spent;
    this.#isHeld = true;
    const scope = this.#scopeOf(this.#config.scope);
    const refused: ConversationEvent[] = [];
    for (const { owner, ...origin } of inbox)
      try {
        checkOwner({ owner, isCertain }, scope);
        this.#add({ origin, scope });
      } catch (error) {
        this.#count += 1;
        this.#logFailure('Turn failed', error);
        refused.push({ type: 'turn-end', turn: { number: this.#count, origin }, error });
      }
    const lost: ConversationEvent[] = [];
    for (const task of tasks) {
      const { tool, callId, id: taskId } = task;
      const result = interruptedResult(tool);
      this.#add({ origin: completionOf({ tool, callId, taskId }, result), scope });
      lost.push({ type: 'task-end', task, result });
    }
    if (turn !== undefined) {
      const { number, origin, isAborted, standing: begin } = turn;
      const resumedBy = begin.status === 'suspended' ? {} : { resumedBy: 'restore' as const };
      let history = this.#history;
      if (begin.status === 'running') history = history.extended(this.#config.systemPrompt, []);
      else {
        // It starts with the system prompt, which a suspended run keeps.
        const messages = [...begin.state.messages];
        history = new HistoryView(messages, messages.length - this.messages.length);
      }
      const opened = this.#open({
        turn: { number, origin, ...resumedBy },
        scope,
        begin,
        history,
        isCertain,
      });
      if (isAborted) opened.stop.abort(new DOMException('The turn was aborted.', 'AbortError'));
    }
    const restored = this.#turn;
    setImmediate(() => {
      this.#isHeld = false;
      if (this.#closed) return this.#notifyIdle();
      for (const event of [...lost, ...refused]) this.#emit(event);
      // An answer or an abort has replaced a suspended turn that it continues.
      if (restored !== undefined && restored === this.#turn && !this.#suspended) this.#start(restored);
      else this.#work();
    });
  }

  /** Starts the next turn if one can start. */
  #work(): void {
    const [entry] = this.#inbox;
    const isStopped = this.#isHeld || this.#closed !== undefined;
    if (this.#turn !== undefined || isStopped || entry === undefined) {
      this.#notifyIdle();
      return;
    }
    const { origin, scope, signal, outcome, within, unfollow } = entry;
    this.#inbox.delete(entry);
    unfollow();
    this.#count += 1;
    const said = turnMessage(origin);
    const history = this.#history.extended(this.#config.systemPrompt, said === undefined ? [] : [said]);
    const begin = withoutUndefined({ status: 'running' as const, owner: scope.owner });
    const turn = { number: this.#count, origin };
    within(() => this.#start(this.#open({ turn, scope, signal, begin, history, isCertain: true, outcome })));
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
    const config = this.#config;
    const signal = anySignal(config.signal, config.scope?.signal, start.signal);
    this.#turn = new MemoryTurn({ ...start, signal }, config.store !== undefined);
    return this.#turn;
  }

  /** Starts the open turn and notifies listeners immediately. */
  #start(turn: MemoryTurn): void {
    turn.isRunning = true;
    this.#unsubscribeTasks ??= this.#taskQueue.subscribe((event) => {
      if (event.task.conversationId !== this.id) return;
      this.#emit(event);
      if (event.type !== 'task-end') return;
      this.#restTasks();
      this.#notifyIdle();
    });
    this.#emit({ type: 'turn-start', turn: turn.start.turn });
    void this.#take(turn);
  }

  /** Runs a turn, and starts the next one. */
  async #take(turn: MemoryTurn): Promise<void> {
    const { scope, outcome } = turn.start;
    // The caller that opened the turn continues first.
    await Promise.resolve();
    const running = new Set<string>();
    const sink = (event: LoopEvent): void => {
      if (event.type === 'call-start') running.add(event.callId);
      if (event.type === 'call-end' || event.type === 'call-suspended') running.delete(event.callId);
      // Progress of work that outlives its call is reported as `task-progress`.
      if (event.type === 'call-progress' && !running.has(event.callId)) return;
      if (event.type === 'run-end') turn.end(event.result);
      this.#emit(event);
      if (event.type !== 'call-end') return;
      const { callId, tool, result, record } = event;
      this.#emitUserMessage(result, { tool, callId, taskId: record.taskId });
    };
    const config: ConversationConfig = {
      ...this.#config,
      signal: turn.stop.signal,
      onAsyncResult: (context, completion) => {
        if (this.#closed) return;
        const call = callOfContext(context);
        this.#add({ origin: completionOf(call, completion), scope });
        this.#emitUserMessage(completion, call);
        const { onAsyncResult } = this.#config;
        callListener(
          () => onAsyncResult?.(context, completion),
          (error) => this.#logFailure('A listener for async results threw', error),
        );
        // After the end of the task has been reported.
        queueMicrotask(() => this.#work());
      },
    };
    const resultsOf = resultsOfConversation(this.id);
    const hasReader = () => this.#listeners.size > 0;
    const deps = { scope, sink, hasReader, onStep: turn.onStep, resultsOf };
    try {
      const result = await drive(turn, config, deps);
      turn.end(result);
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
    this.#emit({ type: 'turn-end', turn: turn.start.turn, ...end });
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

  /** Emits `forUser` of a result, unless it is silent or empty. */
  #emitUserMessage({ forUser, silent }: ToolResult, call: CompletedCall): void {
    if (forUser && !silent) this.#emit(userMessage(forUser, call));
  }

  /** The signal of a scope ends a turn, but not the work that the turn starts. */
  #scopeOf(outer: CallScope | undefined, scope?: CallScope): CallScope {
    const { signal: _, ...merged } = { ...scopeFields(outer), ...scopeFields(scope) };
    return { ...merged, conversationId: this.id };
  }

  /** Every listener receives all events in the same order: those that a listener causes come after the current one. */
  #emit(event: ConversationEvent): void {
    this.#unsent.push(event);
    if (this.#isEmitting) return;
    this.#isEmitting = true;
    for (let next = this.#unsent.shift(); next !== undefined; next = this.#unsent.shift())
      this.#listeners.notify(next, (error) => this.#logFailure('A listener of a conversation threw', error));
    this.#isEmitting = false;
  }

  #notifyIdle(): void {
    const isAtRest = this.#turn === undefined ? this.#inbox.size === 0 : this.#suspended !== undefined;
    if (this.#isHeld || this.#checking > 0 || !isAtRest) return;
    for (const waiter of this.#idleWaiters) {
      if (waiter.tasks && this.tasks.length > 0) continue;
      this.#idleWaiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** Throws if a turn runs or is suspended. */
  #checkFree(what: string): void {
    if (this.#suspended !== undefined) throw notReady(what, 'a turn waits for answers: answer or abort it');
    if (this.#turn !== undefined) throw notReady(what, RUNNING);
  }

  #logFailure(what: string, error: unknown): void {
    const { logger, tools } = this.#config;
    logFailure(logger ?? tools.logger, { what, error, at: { conversationId: this.id } });
  }
}

const RUNNING = 'a turn is running: wait for its end, or `idle()`';

function notReady(what: string, why: string): ToolwrightError {
  return new ToolwrightError('ConversationNotReady', `${what}, because ${why}.`);
}

const TURN_RULES = omitFields(LOOP_RULES, 'checkpoint', 'leaseMs', 'runId');

const CONVERSATION_OPTIONS = optionTable<ConversationConfig>(
  'Conversation',
  { ...TURN_RULES, systemPrompt: TEXT, id: FILLED_TEXT, messages: LIST, scope: SCOPE_OPTION },
  { ...LOOP_ALIASES, conversationId: 'id: …' },
);

const CHANGES = optionTable<ConversationChanges>(
  'Conversation.update',
  { provider: PROVIDER, model: MODEL, tools: LOOP_RULES.tools, systemPrompt: TEXT },
  LOOP_ALIASES,
);

const TURN_OPTIONS = optionTable<TurnOptions>(
  'the turn of a Conversation',
  { signal: SIGNAL, scope: SCOPE_OPTION },
  { data: 'scope: { data: … }' },
);

const ANSWER_OPTIONS = optionTable<AnswerOptions>(
  'the answer of a Conversation',
  { signal: SIGNAL, scope: SCOPE_OPTION, answeredBy: JSON_VALUE },
  { data: 'scope: { data: … }' },
);

const IDLE_OPTIONS = optionTable<IdleOptions>('Conversation.idle', { tasks: BOOLEAN });

/** Receives the outcome of a turn. */
type TurnOutcome = Pick<PromiseWithResolvers<ToolLoopResult>, 'resolve' | 'reject'>;

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
  readonly outcome?: TurnOutcome | undefined;
}

/** A turn that has begun in this process, its progress, and its state for a snapshot. */
class MemoryTurn {
  /** The history up to the last message whose calls all have their answers. */
  history: HistoryView;
  /** The state for a snapshot; `undefined` once the run has ended. */
  status: TurnStatus | (() => TurnStatus) | undefined;
  /** In this process. */
  isRunning = false;
  /** Ends the turn. */
  readonly stop = new AbortController();
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
    this.#unfollow = signal ? onAbort(signal, () => this.stop.abort(signal.reason)) : () => {};
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
    const isAborted = standing.status !== 'suspended' && this.stop.signal.aborted;
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
  { start, stop: { signal } }: MemoryTurn,
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
