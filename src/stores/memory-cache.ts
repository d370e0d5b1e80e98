import type { ResultCache } from '../contract/result-cache.js';
import type { StoredResult } from '../contract/run-state.js';

/** So many are kept at most; of more, the oldest are forgotten. */
const MOST = 10_000;

/** The results that a store in memory keeps. */
export class MemoryCache implements ResultCache {
  readonly #kept = new Map<string, { readonly result: string; readonly end: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  cachedResult(key: string): StoredResult | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined || kept.end <= this.#now()) return undefined;
    return JSON.parse(kept.result) as StoredResult;
  }

  cacheResult(key: string, result: StoredResult, lifetimeMs: number): void {
    this.#kept.delete(key);
    this.#kept.set(key, { result: JSON.stringify(result), end: this.#now() + lifetimeMs });
    if (this.#kept.size > MOST) this.#kept.delete(this.#kept.keys().next().value as string);
  }

  forgetResult(key: string): void {
    this.#kept.delete(key);
    for (const [other, { end }] of this.#kept) if (end <= this.#now()) this.#kept.delete(other);
  }
}
