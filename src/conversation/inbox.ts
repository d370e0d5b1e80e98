import { AsyncLocalStorage } from 'node:async_hooks';
import type { TaskQueue } from '../call/task-queue.js';
import type { CallScope } from '../contract/call.js';
import type { BackgroundTask, TaskEvent } from '../contract/tool-context.js';
import { onAbort } from '../kernel/async.js';
import type { ToolLoopResult } from '../loop/events.js';
import type { TurnOrigin } from './events.js';
import type { StoredOrigin } from './snapshot.js';

/** What waits for a turn of its own. */
export interface Waiting {
  readonly origin: TurnOrigin;
  readonly scope: CallScope;
  /** Runs its turn where it came from: in the `AsyncLocalStorage` of its caller, not in that of the turn before. */
  readonly within: <Result>(run: () => Result) => Result;
  readonly signal?: AbortSignal;
  /** Told what came of the turn. */
  readonly done?: TurnOutcome;
}

/** Hears what came of a turn, as a promise does. */
interface TurnOutcome {
  resolve(result: ToolLoopResult): void;
  reject(error: unknown): void;
}

interface Entry {
  readonly waiting: Waiting;
  readonly forget: () => void;
}

/** What waits, in order of arrival. */
export class Inbox {
  readonly #entries = new Set<Entry>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** What waits, as a snapshot keeps it. */
  get origins(): readonly StoredOrigin[] {
    return Array.from(this.#entries, ({ waiting: { origin, scope } }) =>
      scope.owner === undefined ? origin : { ...origin, owner: scope.owner },
    );
  }

  /** `withdrawn` hears where the signal is aborted while this waits; then it waits no longer. */
  add(arrived: Omit<Waiting, 'within'>, withdrawn: () => void = () => {}): void {
    const waiting = { ...arrived, within: AsyncLocalStorage.snapshot() };
    const { signal } = waiting;
    const withdraw = (): void => {
      this.#entries.delete(entry);
      withdrawn();
    };
    const unfollow = signal === undefined || signal.aborted ? () => {} : onAbort(signal, withdraw);
    const entry = { waiting, forget: unfollow };
    this.#entries.add(entry);
  }

  /** The next one, which waits no longer. */
  take(): Waiting | undefined {
    const [entry] = this.#entries;
    if (entry === undefined) return undefined;
    this.#entries.delete(entry);
    entry.forget();
    return entry.waiting;
  }

  /** All that wait; nothing does any more. */
  clear(): readonly Waiting[] {
    const all: Waiting[] = [];
    for (let next = this.take(); next !== undefined; next = this.take()) all.push(next);
    return all;
  }
}

/** How much of a conversation is at rest. */
interface Rest {
  /** No turn runs, and none could begin. */
  readonly turns: boolean;
  /** No work that a tool has started goes on. */
  readonly tasks: boolean;
}

interface Waiter {
  readonly tasks: boolean;
  readonly resolve: () => void;
}

/** Those who wait for a conversation to be idle. */
export class IdleWaiters {
  #waiters: readonly Waiter[] = [];

  /** Resolves when the turns are at rest, and where `tasks` is asked for those too. */
  add(tasks: boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters = [...this.#waiters, { tasks, resolve }];
    });
  }

  /** Tells those whose wait is over. */
  tell(restOf: () => Rest): void {
    if (this.#waiters.length === 0) return;
    const rest = restOf();
    const isOver = ({ tasks }: Waiter): boolean => rest.turns && (rest.tasks || !tasks);
    const over = this.#waiters.filter(isOver);
    this.#waiters = this.#waiters.filter((waiter) => !isOver(waiter));
    for (const { resolve } of over) resolve();
  }
}

/** What the tasks of a conversation are taken from. */
interface ConversationTasksParts {
  /** May serve many conversations. */
  readonly queue: TaskQueue;
  readonly conversationId: string;
  readonly tell: (event: TaskEvent) => void;
}

/** The started work of one conversation. It listens to the queue only while there is something to hear. */
export class ConversationTasks {
  readonly queue: TaskQueue;
  readonly #parts: Omit<ConversationTasksParts, 'queue'>;
  #unsubscribe: (() => void) | undefined;

  constructor({ queue, ...parts }: ConversationTasksParts) {
    this.queue = queue;
    this.#parts = parts;
  }

  /** What waits or runs, in the order in which it was started. */
  get open(): readonly BackgroundTask[] {
    return this.queue.tasks.filter((task) => this.#isOwn(task));
  }

  cancel(taskId: string, reason: string | undefined): boolean {
    return this.open.some(({ id }) => id === taskId) && this.queue.cancel(taskId, reason);
  }

  /** Tools may start work from now on. */
  listen(): void {
    this.#unsubscribe ??= this.queue.subscribe((event) => {
      if (this.#isOwn(event.task)) this.#parts.tell(event);
    });
  }

  /** Nothing more is started; where nothing is open, there is nothing to hear. */
  rest(): void {
    if (this.open.length > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  #isOwn({ conversationId }: BackgroundTask): boolean {
    return conversationId === this.#parts.conversationId;
  }
}
