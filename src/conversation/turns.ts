import { completionOf } from '../call/completion-entry.js';
import { logFailure } from '../call/failure-log.js';
import { SafeLog } from '../call/log.js';
import { interruptedResult } from '../call/result-text.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { addSpending, type Spending } from '../contract/budget.js';
import type { Answer, CallScope } from '../contract/call.js';
import type { Message, UserMessage } from '../contract/llm-provider.js';
import type { TaskEvent, ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { refuseOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { anySignal, callListener } from '../kernel/async.js';
import { plainJson } from '../kernel/json.js';
import type { ToolLoopResult } from '../loop/events.js';
import { historyFaults } from '../loop/given-history.js';
import { abortedBefore } from '../loop/loop-run.js';
import { askedAnew, resumeWith } from '../loop/resume.js';
import { signState } from '../loop/suspend.js';
import { callOfContext, callOfTask, EventHub, type TurnOrigin, tellUser, turnMessage } from './events.js';
import { ConversationTasks, IdleWaiters, Inbox, type Waiting } from './inbox.js';
import type { AnswerOptions, ConversationConfig, TurnOptions } from './options.js';
import {
  type ConversationSnapshot,
  type StoredTurn,
  type SuspendedStatus,
  type ValidSnapshot,
  withoutStore,
} from './snapshot.js';
import { CurrentTurn, HistoryView, ownerFault, runTurn, type TurnParts } from './turn.js';

/** The config of a conversation, what it left out filled in. */
interface ReadyConfig extends ConversationConfig {
  readonly id: string;
  readonly tools: ToolRegistry;
}

/** Takes the turns of a conversation, one at a time and in order of arrival. */
export class Turns {
  readonly events: EventHub;
  readonly tasks: ConversationTasks;
  #config: ReadyConfig;
  readonly #inbox = new Inbox();
  readonly #idle = new IdleWaiters();
  /** What was said before the current turn. */
  #history: HistoryView;
  /** The turn that runs or is suspended. */
  #current: CurrentTurn | undefined;
  #isRunning = false;
  #count = 0;
  /** By turns that have ended. */
  #spent: Spending | undefined;
  /** No turn begins, because the conversation was restored just now. */
  #isHeld = false;
  #isClosed = false;

  constructor(config: ReadyConfig) {
    this.#config = config;
    this.#history = new HistoryView([...(config.messages ?? [])]);
    this.events = new EventHub((error) => this.#warn('A listener of a conversation threw', error));
    this.tasks = new ConversationTasks({
      queue: config.tasks ?? config.tools.tasks,
      conversationId: config.id,
      tell: (event) => this.#hearTask(event),
    });
  }

  get messages(): readonly Message[] {
    return this.#currentHistory.messages;
  }

  /** What the current turn waits for, where it is suspended. */
  get suspended(): SuspendedStatus | undefined {
    return this.#isRunning ? undefined : this.#current?.suspended;
  }

  get spent(): Spending | undefined {
    return addSpending(this.#spent, this.suspended?.state.spent);
  }

  prompt(content: UserMessage['content'], options: TurnOptions): Promise<ToolLoopResult> {
    return this.#enter(
      { kind: 'prompt', content: typeof content === 'string' ? content : [...content] },
      options,
    );
  }

  /** A turn that begins with what was said last. */
  continue(options: TurnOptions): Promise<ToolLoopResult> {
    this.#checkFree('It was not continued');
    if (!this.#inbox.isEmpty) throw notReady('It was not continued', 'what waits for a turn comes first');
    const role = this.messages.at(-1)?.role;
    if (role !== 'user' && role !== 'tool') {
      const end = role === undefined ? 'nothing was said yet' : 'the model has said the last word';
      throw notReady('It was not continued', `${end}: use \`prompt\``);
    }
    return this.#enter({ kind: 'continue' }, options);
  }

  /** A suspended run keeps its model and its prompt; its tools are looked up anew. */
  update(changes: Partial<ReadyConfig>): void {
    if (this.#isRunning) throw notReady('It was not changed', RUNNING);
    // Work that goes on stays where it can be seen and cancelled.
    this.#config = { ...this.#config, ...changes, tasks: this.tasks.queue };
  }

  edit(change: (messages: Message[]) => readonly Message[]): void {
    this.#checkFree('Its history was not edited');
    const edited = change([...this.messages]);
    const where = 'Conversation.editHistory';
    refuseOptions(historyFaults(edited, 'refuse').map((fault) => ({ ...fault, where })));
    this.#history = new HistoryView([...edited]);
  }

  /** No turn runs or is suspended. */
  #checkFree(what: string): void {
    if (this.suspended !== undefined) throw notReady(what, 'a turn waits for answers: answer or abort it');
    if (this.#current !== undefined) throw notReady(what, RUNNING);
  }

  #enter(origin: TurnOrigin, { signal, scope }: TurnOptions): Promise<ToolLoopResult> {
    const stop = anySignal(signal, scope?.signal);
    if (stop?.aborted) return Promise.resolve(abortedBefore(this.messages, stop));
    return new Promise((resolve, reject) => {
      const done = { resolve, reject };
      this.#inbox.add({ origin, scope: this.#within(this.#config.scope, scope), signal: stop, done }, () => {
        resolve(abortedBefore(this.messages, stop));
        this.#tellIdle();
      });
      this.#work();
    });
  }

  answer(answers: readonly Answer[], options: AnswerOptions): Promise<ToolLoopResult> {
    const { signal, scope } = options;
    const { suspended } = this;
    const current = this.#current;
    if (current === undefined || suspended === undefined) throw nothingAsked();
    const answeredBy = plainJson(options.answeredBy);
    const checking = resumeWith(this.#config, suspended.state, {
      answers,
      answeredBy,
      // A scope that is given must name the owner, too.
      scope: scope ?? current.scope,
      // Of a run that the store keeps, the store's state decides in the end.
      isCertain: current.isCertain || suspended.isKept,
      isTrial: true,
    });
    const take = (): Promise<ToolLoopResult> => {
      // Somebody else was quicker, while edited arguments were checked.
      if (this.suspended !== suspended || this.#isClosed) throw nothingAsked();
      const answered = this.#put({
        turn: { ...current.turn, resumedBy: 'answer' },
        scope: this.#within(current.scope, scope),
        signal: anySignal(signal, scope?.signal),
        status: { ...suspended, status: 'answered', answers, answeredBy },
        history: current.history,
        isCertain: current.isCertain,
      });
      return this.#run(answered);
    };
    if (!(checking instanceof Promise)) return take();
    const refuse = (error: unknown): never => {
      const anew = askedAnew(error, this.#config.stateSecret);
      // What a store keeps, whoever claims it there asks anew.
      if (anew !== undefined && !suspended.isKept && this.suspended === suspended) current.askAnew(anew);
      throw error;
    };
    return checking.then(take, refuse);
  }

  abort(reason: unknown): void {
    const { suspended } = this;
    const current = this.#current;
    if (current === undefined || suspended === undefined) {
      current?.abort(reason);
      return;
    }
    const ending = this.#put({
      turn: { ...current.turn, resumedBy: 'abort' },
      scope: current.scope,
      status: { ...suspended, status: 'answered', answers: [] },
      history: current.history,
      isCertain: current.isCertain,
    });
    ending.abort(reason);
    this.#runAlone(ending);
  }

  idle(tasks: boolean): Promise<void> {
    const idle = this.#idle.add(tasks);
    this.#tellIdle();
    return idle;
  }

  snapshot(turn: StoredTurn | undefined = this.#current?.stored()): ConversationSnapshot {
    const { id, scope, stateSecret: secret } = this.#config;
    const { origins } = this.#inbox;
    const isOwned = [scope, this.#current?.scope, ...origins].some((named) => named?.owner !== undefined);
    const snapshot: ConversationSnapshot = {
      version: 2,
      id,
      messages: this.messages,
      turns: this.#count,
      ...(turn === undefined ? {} : { turn }),
      inbox: origins,
      tasks: this.tasks.open,
      ...(this.#spent === undefined ? {} : { spent: this.#spent }),
    };
    return signState(JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot, { secret, isOwned });
  }

  /** Goes on from a snapshot, with the next turn of the event loop. */
  restore({ snapshot: { turns, turn, inbox, tasks, spent }, isCertain }: ValidSnapshot): void {
    this.#count = turns;
    this.#spent = spent;
    const scope = this.#within(this.#config.scope);
    const lost = tasks.map((task) => ({ task, result: interruptedResult(task.tool) }));
    const refused: { readonly origin: TurnOrigin; readonly error: ToolwrightError }[] = [];
    for (const { owner, ...origin } of inbox) {
      const error = ownerFault({ owner, isCertain }, scope);
      if (error === undefined) this.#inbox.add({ origin, scope });
      else refused.push({ origin, error });
    }
    for (const { task, result } of lost)
      this.#inbox.add({ origin: completionOf(callOfTask(task), result), scope });
    const restored = turn && this.#restored(turn, { scope, isCertain });
    this.#isHeld = true;
    setImmediate(() => {
      this.#isHeld = false;
      if (this.#isClosed) return this.#tellIdle();
      for (const ended of lost) this.events.tell({ type: 'task-end', ...ended });
      for (const { origin, error } of refused) this.#refuse(origin, error);
      if (restored !== undefined && restored === this.#current && this.#isRunning) this.#runAlone(restored);
      else this.#work();
    });
  }

  /** Nothing begins any more, what waits is dropped, and what runs is aborted; the snapshot knows nothing of it. */
  close(): ConversationSnapshot {
    const snapshot = this.snapshot(withoutStore(this.#current?.stored()));
    this.#isClosed = true;
    for (const { done } of this.#inbox.clear())
      done?.resolve(abortedBefore(this.messages, AbortSignal.abort(closedError())));
    for (const { id } of this.tasks.open) this.tasks.cancel(id, 'the conversation was closed');
    if (this.#isRunning && !this.#isHeld) this.#current?.abort(closedError());
    else this.#clear();
    this.#tellIdle();
    return snapshot;
  }

  /** Begins the next turn, if one can begin. */
  #work(): void {
    const isFree = this.#current === undefined && !this.#isHeld && !this.#isClosed;
    const next = isFree ? this.#inbox.take() : undefined;
    if (next === undefined) this.#tellIdle();
    else this.#begin(next);
  }

  #begin({ origin, scope, signal, done, within }: Waiting): void {
    this.#count += 1;
    const turn = { number: this.#count, origin };
    const said = turnMessage(origin);
    const history = new HistoryView(said === undefined ? this.messages : [...this.messages, said]);
    const { owner } = scope;
    const status = { status: 'running', ...(owner === undefined ? {} : { owner }) } as const;
    const begun = this.#put({ turn, scope, signal, status, history });
    const running = within(() => this.#run(begun));
    running.then(done?.resolve, done?.reject ?? this.#logFailed);
  }

  /** A turn that never begins. */
  #refuse(origin: TurnOrigin, error: ToolwrightError): void {
    this.#count += 1;
    this.#logFailed(error);
    this.events.tell({ type: 'turn-end', turn: { number: this.#count, origin }, error });
  }

  #restored(
    { number, origin, isAborted, standing: status }: StoredTurn,
    place: { readonly scope: CallScope; readonly isCertain: boolean },
  ): CurrentTurn {
    const resumedBy = status.status === 'suspended' ? {} : { resumedBy: 'restore' as const };
    const restored = this.#put({
      turn: { number, origin, ...resumedBy },
      ...place,
      status,
      history: this.#currentHistory,
    });
    if (isAborted) restored.abort(new DOMException('The turn was aborted.', 'AbortError'));
    return restored;
  }

  get #currentHistory(): HistoryView {
    return this.#current?.history ?? this.#history;
  }

  /** Makes a turn the current one, in place of the suspended one that it goes on from; it runs or is suspended. */
  #put({ signal, ...parts }: Omit<TurnParts, 'hasStore'>): CurrentTurn {
    const { signal: always, scope, store } = this.#config;
    const joined = anySignal(always, scope?.signal, signal);
    const current = new CurrentTurn({ ...parts, signal: joined, hasStore: store !== undefined });
    this.#current = current;
    this.#isRunning = current.suspended === undefined;
    return current;
  }

  /** Runs the current turn. */
  async #run(current: CurrentTurn): Promise<ToolLoopResult> {
    const { turn, scope } = current;
    this.tasks.listen();
    this.events.tell({ type: 'turn-start', turn });
    try {
      const result = await runTurn(current, {
        config: this.#config,
        events: this.events,
        onAsyncResult: (context, completion) => this.#complete(scope, context, completion),
      });
      if (result.state === undefined) this.#spent = addSpending(this.#spent, result.spent);
      this.#leave(current);
      this.events.tell({ type: 'turn-end', turn, result });
      return result;
    } catch (error) {
      current.fail();
      this.#leave(current);
      this.events.tell({ type: 'turn-end', turn, error });
      throw error;
    } finally {
      // The turn runs no more, but may be suspended; a listener may have begun another.
      if (!this.#isRunning) this.tasks.rest();
      this.#work();
    }
  }

  /** A turn whose outcome nobody waits for; `turn-end` tells it. */
  #runAlone(current: CurrentTurn): void {
    this.#run(current).catch(this.#logFailed);
  }

  readonly #logFailed = (error: unknown): void => {
    const { logger, tools, id } = this.#config;
    logFailure(logger ?? tools.logger, { what: 'Turn failed', error, at: { conversationId: id } });
  };

  #leave(current: CurrentTurn): void {
    current.leave();
    this.#isRunning = false;
    if (current.suspended === undefined) this.#clear();
  }

  /** There is no current turn any more, though it may not have ended. */
  #clear(): void {
    this.#history = this.#currentHistory;
    this.#current?.leave();
    this.#current = undefined;
    this.#isRunning = false;
  }

  /** Work that a turn had started in this scope has completed. */
  #complete(scope: CallScope, context: ToolContext | undefined, result: ToolResult): void {
    if (this.#isClosed) return;
    const call = callOfContext(context);
    this.#inbox.add({ origin: completionOf(call, result), scope });
    tellUser(this.events, result, call);
    const { onAsyncResult } = this.#config;
    callListener(
      () => onAsyncResult?.(context, result),
      (error) => this.#warn('A listener for async results threw', error),
    );
    // After the end of the task has been told.
    queueMicrotask(() => this.#work());
  }

  #hearTask(event: TaskEvent): void {
    this.events.tell(event);
    if (event.type !== 'task-end') return;
    if (!this.#isRunning) this.tasks.rest();
    this.#tellIdle();
  }

  /** The signal of a scope ends a turn, and not the work that the turn starts. */
  #within(outer: CallScope | undefined, scope?: CallScope): CallScope {
    const { signal: _, ...merged } = { ...outer, ...scope };
    return { ...merged, conversationId: this.#config.id };
  }

  #tellIdle(): void {
    this.#idle.tell(() => ({
      turns: !this.#isRunning && !this.#isHeld && (this.#current !== undefined || this.#inbox.isEmpty),
      tasks: this.tasks.open.length === 0,
    }));
  }

  #warn(message: string, error: unknown): void {
    new SafeLog(this.#config.logger).warn(message, { error });
  }
}

const RUNNING = 'a turn is running: wait for its end, or `idle()`';

function notReady(what: string, why: string): ToolwrightError {
  return new ToolwrightError('ConversationNotReady', `${what}, because ${why}.`);
}

function nothingAsked(): ToolwrightError {
  return new ToolwrightError('InvalidAnswer', 'The conversation waits for no answer.');
}

function closedError(): DOMException {
  return new DOMException('The conversation was closed.', 'AbortError');
}
