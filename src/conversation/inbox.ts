import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallScope } from '../contract/call-scope.js';
import { onAbort } from '../kernel/on-abort.js';
import type { ToolLoopResult } from '../loop/loop-result.js';
import type { TurnOrigin } from './conversation-event.js';
import type { StoredOrigin } from './conversation-snapshot.js';

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
export interface TurnOutcome {
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
