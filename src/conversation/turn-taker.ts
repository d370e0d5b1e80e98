import { plainJson } from '../checking/plain-json.js';
import type { TaskEvent } from '../contract/background-task.js';
import type { CallScope } from '../contract/call-scope.js';
import type { UserMessage } from '../contract/message.js';
import type { Answer } from '../contract/suspension.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { callListener } from '../invocation/call-listener.js';
import { interruptedResult } from '../invocation/interrupted-result.js';
import { SafeLog } from '../invocation/safe-log.js';
import { abortedRun } from '../loop/aborted-run.js';
import { anySignal } from '../loop/any-signal.js';
import type { ToolLoopResult } from '../loop/loop-result.js';
import { beginState, endState } from '../loop/loop-state.js';
import { resumeWith } from '../loop/resume-tool-loop.js';
import { checkOwner, type Ownership } from '../loop/run-owner.js';
import { signState } from '../loop/sign-state.js';
import type { ToolRegistry } from '../registry/tool-registry.js';
import { callOfContext, callOfTask, completionOf } from './completion.js';
import type { AnswerOptions, ConversationConfig, TurnOptions } from './conversation-config.js';
import type { TurnOrigin } from './conversation-event.js';
import type { ConversationSnapshot, StoredTurn } from './conversation-snapshot.js';
import { ConversationTasks } from './conversation-tasks.js';
import { EventHub } from './event-hub.js';
import { HistoryView } from './history-view.js';
import { IdleWaiters } from './idle-waiters.js';
import { Inbox, type Waiting } from './inbox.js';
import type { OpenTurn } from './open-turn.js';
import type { ReadSnapshot } from './read-snapshot.js';
import { tellUser } from './tell-user.js';
import { turnMessage } from './turn-message.js';
import { TurnSlot } from './turn-slot.js';
import { withoutStore } from './without-store.js';

/** The config of a conversation, what it left out filled in. */
export interface ReadyConfig extends ConversationConfig {
  readonly id: string;
  readonly tools: ToolRegistry;
}

/** What waited for a turn on behalf of another owner than it would be taken now. */
interface Refused {
  readonly origin: TurnOrigin;
  readonly error: ToolwrightError;
}

/** Where a restored turn goes on. */
interface RestoredPlace {
  readonly scope: CallScope;
  readonly isCertain: boolean;
}

/** Takes the turns of a conversation, one at a time and in order of arrival. */
export class TurnTaker {
  readonly events: EventHub;
  readonly tasks: ConversationTasks;
  readonly slot: TurnSlot;
  readonly #config: ReadyConfig;
  readonly #inbox = new Inbox();
  readonly #idle = new IdleWaiters();
  #count = 0;
  /** No turn begins, because the conversation was restored just now. */
  #isHeld = false;
  #isClosed = false;

  constructor(config: ReadyConfig) {
    this.#config = config;
    this.events = new EventHub((error) => this.#warn('A listener of a conversation threw', error));
    this.tasks = new ConversationTasks({
      queue: config.tasks ?? config.tools.tasks,
      conversationId: config.id,
      tell: (event) => this.#hearTask(event),
    });
    this.slot = new TurnSlot({
      config,
      events: this.events,
      onCompletion: (scope, context, result) => this.#complete(scope, context, result),
      onStart: () => this.tasks.listen(),
      onEnd: () => {
        if (!this.slot.isRunning) this.tasks.rest();
        this.#work();
      },
    });
  }

  prompt(content: UserMessage['content'], { signal, scope }: TurnOptions): Promise<ToolLoopResult> {
    const stop = anySignal(signal, scope?.signal);
    if (stop?.aborted) return Promise.resolve(this.#withdrawn(stop));
    return new Promise((resolve, reject) => {
      const done = { resolve, reject };
      const origin = { kind: 'prompt', content: copyOf(content) } as const;
      this.#inbox.add({ origin, scope: this.#within(this.#config.scope, scope), signal: stop, done }, () => {
        resolve(this.#withdrawn(stop));
        this.#tellIdle();
      });
      this.#work();
    });
  }

  answer(answers: readonly Answer[], options: AnswerOptions): Promise<ToolLoopResult> {
    const { signal, scope } = options;
    const { open, suspended } = this.slot;
    if (open === undefined || suspended === undefined)
      throw new ToolwrightError('InvalidAnswer', 'The conversation waits for no answer.');
    const answeredBy = plainJson(options.answeredBy);
    resumeWith(this.#config, suspended.state, {
      answers,
      answeredBy,
      // A scope that is given must name the owner, too.
      scope: scope ?? open.scope,
      // Of a run that the store keeps, the store's state decides in the end.
      isCertain: open.isCertain || suspended.isKept,
    });
    const answered = this.slot.put({
      turn: { ...open.turn, resumedBy: 'answer' },
      scope: this.#within(open.scope, scope),
      signal: anySignal(signal, scope?.signal),
      standing: { ...suspended, status: 'answered', answers, answeredBy },
      history: open.history,
      isCertain: open.isCertain,
    });
    return this.slot.run(answered);
  }

  abort(reason: unknown): void {
    const { open, suspended } = this.slot;
    if (open === undefined || suspended === undefined) {
      open?.abort(reason);
      return;
    }
    const ending = this.slot.put({
      turn: { ...open.turn, resumedBy: 'abort' },
      scope: open.scope,
      standing: { ...suspended, status: 'answered', answers: [] },
      history: open.history,
      isCertain: open.isCertain,
    });
    ending.abort(reason);
    this.#runAlone(ending);
  }

  idle(tasks: boolean): Promise<void> {
    const idle = this.#idle.add(tasks);
    this.#tellIdle();
    return idle;
  }

  snapshot(turn: StoredTurn | undefined = this.slot.open?.stored()): ConversationSnapshot {
    const { id, stateSecret: secret } = this.#config;
    const { origins } = this.#inbox;
    const isOwned = [this.#config.scope, this.slot.open?.scope, ...origins].some(
      (named) => named?.owner !== undefined,
    );
    const snapshot: ConversationSnapshot = {
      version: 1,
      id,
      messages: this.slot.messages,
      turns: this.#count,
      ...(turn === undefined ? {} : { turn }),
      inbox: origins,
      tasks: this.tasks.open,
    };
    return signState(JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot, { secret, isOwned });
  }

  /** Goes on from a snapshot, with the next turn of the event loop. */
  restore({ snapshot: { turns, turn, inbox, tasks }, isCertain }: ReadSnapshot): void {
    this.#count = turns;
    const scope = this.#within(this.#config.scope);
    const lost = tasks.map((task) => ({ task, result: interruptedResult(task.tool) }));
    const refused: Refused[] = [];
    for (const { owner, ...origin } of inbox) {
      const error = ownerFault({ owner, isCertain }, scope);
      if (error === undefined) this.#inbox.add({ origin, scope });
      else refused.push({ origin, error });
    }
    for (const { task, result } of lost)
      this.#inbox.add({ origin: completionOf(callOfTask(task), result), scope });
    const open = turn && this.#restored(turn, { scope, isCertain });
    this.#isHeld = true;
    setImmediate(() => {
      this.#isHeld = false;
      if (this.#isClosed) return this.#tellIdle();
      for (const ended of lost) this.events.tell({ type: 'task-end', ...ended });
      for (const { origin, error } of refused) this.#refuse(origin, error);
      if (open !== undefined && open === this.slot.open && this.slot.isRunning) this.#runAlone(open);
      else this.#work();
    });
  }

  /** Nothing begins any more, what waits is dropped, and what runs is aborted; the snapshot knows nothing of it. */
  close(): ConversationSnapshot {
    const snapshot = this.snapshot(withoutStore(this.slot.open?.stored()));
    this.#isClosed = true;
    for (const { done } of this.#inbox.clear())
      done?.resolve(this.#withdrawn(AbortSignal.abort(closedError())));
    for (const { id } of this.tasks.open) this.tasks.cancel(id, 'the conversation was closed');
    if (this.slot.isRunning && !this.#isHeld) this.slot.open?.abort(closedError());
    else this.slot.clear();
    this.#tellIdle();
    return snapshot;
  }

  /** Begins the next turn, if one can begin. */
  #work(): void {
    const isFree = this.slot.open === undefined && !this.#isHeld && !this.#isClosed;
    const next = isFree ? this.#inbox.take() : undefined;
    if (next === undefined) this.#tellIdle();
    else this.#begin(next);
  }

  #begin({ origin, scope, signal, done, within }: Waiting): void {
    this.#count += 1;
    const turn = { number: this.#count, origin };
    const history = new HistoryView([...this.slot.messages, turnMessage(origin)]);
    const { owner } = scope;
    const standing = { status: 'running', ...(owner === undefined ? {} : { owner }) } as const;
    const open = this.slot.put({ turn, scope, signal, standing, history });
    const running = within(() => this.slot.run(open));
    running.then(done?.resolve, done?.reject ?? (() => {}));
  }

  /** A turn that never begins. */
  #refuse(origin: TurnOrigin, error: ToolwrightError): void {
    this.#count += 1;
    this.events.tell({ type: 'turn-end', turn: { number: this.#count, origin }, error });
  }

  #restored({ number, origin, isAborted, standing }: StoredTurn, place: RestoredPlace): OpenTurn {
    const resumedBy = standing.status === 'suspended' ? {} : { resumedBy: 'restore' as const };
    const turn = { number, origin, ...resumedBy };
    const open = this.slot.put({ turn, ...place, standing, history: this.slot.history });
    if (isAborted) open.abort(new DOMException('The turn was aborted.', 'AbortError'));
    return open;
  }

  /** A turn whose outcome nobody waits for; `turn-end` tells it. */
  #runAlone(open: OpenTurn): void {
    this.slot.run(open).catch(() => {});
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
    if (!this.slot.isRunning) this.tasks.rest();
    this.#tellIdle();
  }

  /** The signal of a scope ends a turn, and not the work that the turn starts. */
  #within(outer: CallScope | undefined, scope?: CallScope): CallScope {
    const { signal: _, ...merged } = { ...outer, ...scope };
    return { ...merged, conversationId: this.#config.id };
  }

  #withdrawn(signal: AbortSignal | undefined): ToolLoopResult {
    return endState(beginState(this.slot.messages), abortedRun(signal));
  }

  #tellIdle(): void {
    const { isRunning, open } = this.slot;
    this.#idle.tell(() => ({
      turns: !isRunning && !this.#isHeld && (open !== undefined || this.#inbox.isEmpty),
      tasks: this.tasks.open.length === 0,
    }));
  }

  #warn(message: string, error: unknown): void {
    new SafeLog(this.#config.logger).warn(message, { error });
  }
}

function ownerFault(of: Ownership, scope: CallScope): ToolwrightError | undefined {
  try {
    checkOwner(of, scope);
    return undefined;
  } catch (error) {
    return error as ToolwrightError;
  }
}

function copyOf(content: UserMessage['content']): UserMessage['content'] {
  return typeof content === 'string' ? content : [...content];
}

function closedError(): DOMException {
  return new DOMException('The conversation was closed.', 'AbortError');
}
