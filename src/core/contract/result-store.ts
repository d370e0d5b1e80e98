import { storeWith } from '../kernel/options.js';
import type { StoredResult } from './run-state.js';

/** Identifies a result. */
export interface ResultKey {
  readonly handle: string;
  /** Its run, or for a turn what all turns of the conversation share; a run with this id need not exist. */
  readonly runId: string;
  /** The run's owner as canonical JSON; absent if the run has no owner. */
  readonly owner?: string;
}

/** A large result in a store. */
export interface KeptResult extends ResultKey {
  readonly text: string;
  /** Milliseconds from now until it is deleted. */
  readonly lifeMs: number;
  /** The only text that it may replace; `null`: no text. Default: it replaces any text. */
  readonly replaces?: string | null;
}

/**
 * The end of the `runId` of results of turns: all turns of a conversation share `<conversationId>.0`, and no turn has
 * the number 0.
 */
export const RESULTS_OF_TURNS = '.0';

/**
 * Stores results that are too large for a model. A result is bound to its `runId` and owner: runs with others cannot
 * find its handle. Every method is atomic, also between processes; methods may be synchronous.
 */
export interface ResultStore {
  /**
   * Stores a result, replacing an older one with the same handle and run, and deletes some expired results. Returns
   * `false`, without a change, if the stored text is not the one that it `replaces`.
   */
  keepResult(result: KeptResult): boolean | Promise<boolean>;
  /** The text of a result; `undefined` if it does not exist, has another owner, or has expired. */
  readResult(key: ResultKey): string | undefined | Promise<string | undefined>;
  /** Deletes expired results and returns their number. */
  removeExpiredResults(): number | Promise<number>;
}

/** A run store that also stores large results. */
export interface StoreWithResults {
  readonly results: ResultStore;
}

/** Whether a store stores results. */
export const keepsResults = storeWith<StoreWithResults>('results', [
  ...['keepResult', 'readResult', 'removeExpiredResults'],
]);

/**
 * Caches results of calls for a limited time. The keys contain everything that a result depends on. Methods may be
 * synchronous.
 */
export interface ResultCache {
  /** The result with this key, unless it has expired. */
  cachedResult(key: string): StoredResult | undefined | Promise<StoredResult | undefined>;
  /** Stores a result for this many milliseconds, replacing an older one. */
  cacheResult(key: string, result: StoredResult, lifetimeMs: number): void | Promise<void>;
  /** Deletes a result and all expired results. */
  forgetResult(key: string): void | Promise<void>;
}

/** A store that also caches results. */
export interface StoreWithCache {
  readonly cache: ResultCache;
}
