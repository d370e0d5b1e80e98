import type { KeptResult, ResultKey, ResultStore } from '../contract/result-store.js';

/** A result, until when it is kept, and whose it is. */
interface HeldResult {
  readonly owner: string | undefined;
  readonly text: string;
  readonly end: number;
}

/** The large results of a store in memory. They are gone with the process, as its runs are. */
export class MemoryResults implements ResultStore {
  readonly #results = new Map<string, HeldResult>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  keepResult({ owner, text, lifeMs, ...key }: KeptResult): void {
    this.removeExpiredResults();
    this.#results.set(placeOf(key), { owner, text, end: this.#now() + lifeMs });
  }

  readResult({ owner, ...key }: ResultKey): string | undefined {
    const held = this.#results.get(placeOf(key));
    if (held === undefined || held.owner !== owner || held.end <= this.#now()) return undefined;
    return held.text;
  }

  /** Forgets those of some runs of an owner. */
  removeOf(isMeant: (runId: string, owner: string | undefined) => boolean): void {
    for (const [place, { owner }] of this.#results) {
      const [runId] = JSON.parse(place) as [string];
      if (isMeant(runId, owner)) this.#results.delete(place);
    }
  }

  removeExpiredResults(): number {
    const now = this.#now();
    const over = [...this.#results].filter(([, { end }]) => end <= now);
    for (const [place] of over) this.#results.delete(place);
    return over.length;
  }
}

/** No text of one key is that of another. */
function placeOf({ runId, handle }: ResultKey): string {
  return JSON.stringify([runId, handle]);
}
