import { isRecord } from '../kernel/json.js';
import { type OptionRule, withMethods } from '../kernel/options.js';
import type { StoredResult } from './run-state.js';

/** Keeps results of calls for a while, by keys that say all they depend on. Methods may be synchronous. */
export interface ResultCache {
  /** What is kept under a key and has not run out. */
  cachedResult(key: string): StoredResult | undefined | Promise<StoredResult | undefined>;
  /** Keeps a result in place of an older one, for so many milliseconds. */
  cacheResult(key: string, result: StoredResult, lifetimeMs: number): void | Promise<void>;
  /** Forgets a result; and all that have run out. */
  forgetResult(key: string): void | Promise<void>;
}

/** A store that keeps results, too. */
export interface StoreWithCache {
  readonly cache: ResultCache;
}

const CACHE = withMethods(['cachedResult', 'cacheResult', 'forgetResult'], 'a cache of results');

/** What an option may be that keeps results. */
export const STORE_WITH_CACHE: OptionRule = {
  accepts: (value) => isRecord(value) && CACHE.accepts(value.cache),
  fix: "new SqliteRunStore({ path: 'runs.sqlite' }), or another store with a cache",
};
