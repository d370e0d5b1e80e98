import { withMethods } from '../kernel/options.js';
import type { StoredResult } from './run-state.js';

/** Which result is meant, and of which run. */
export interface ResultKey {
  readonly handle: string;
  readonly runId: string;
  /** The run's owner as canonical JSON; absent where it has none. */
  readonly owner?: string;
}

/** A large result, as a store stores it. */
export interface KeptResult extends ResultKey {
  readonly text: string;
  /** Milliseconds from now until it is forgotten. */
  readonly lifeMs: number;
}

/**
 * Keeps results that are too large for a model, bound to their run and its owner: under another run or another owner a
 * handle is not found. Every method is atomic, also between processes; methods may be synchronous.
 */
export interface ResultStore {
  /** Keeps a result, in place of one of the same handle and run, and forgets some of those whose time is over. */
  keepResult(result: KeptResult): void | Promise<void>;
  /** The text of a result; `undefined` where there is none, it is another's, or its time is over. */
  readResult(key: ResultKey): string | undefined | Promise<string | undefined>;
  /** Forgets the results whose time is over, and gives their number. */
  removeExpiredResults(): number | Promise<number>;
}

/** A store of runs that stores large results, too. */
export interface StoreWithResults {
  readonly results: ResultStore;
}

const RESULT_STORE = withMethods(['keepResult', 'readResult', 'removeExpiredResults'], '');

/** Whether a store supports large results. */
export function keepsResults(store: unknown): store is StoreWithResults {
  return RESULT_STORE.accepts((store as StoreWithResults | undefined)?.results);
}

/** Keeps results of calls for a while, by keys that say all they depend on. Methods may be synchronous. */
export interface ResultCache {
  /** The result under a key, unless it has expired. */
  cachedResult(key: string): StoredResult | undefined | Promise<StoredResult | undefined>;
  /** Keeps a result in place of an older one, for so many milliseconds. */
  cacheResult(key: string, result: StoredResult, lifetimeMs: number): void | Promise<void>;
  /** Forgets a result; and all that have run out. */
  forgetResult(key: string): void | Promise<void>;
}

/** A store that stores results, too. */
export interface StoreWithCache {
  readonly cache: ResultCache;
}
