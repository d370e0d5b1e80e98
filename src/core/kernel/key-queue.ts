import { unlessAborted } from './async.js';

/** Runs work with the same key one after another in order of arrival; other keys do not wait. */
export class KeyQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Rejects with the signal's reason if it is aborted while waiting. */
  async run<Value>(key: string, work: () => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    const before = this.#tails.get(key);
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    // If an entry leaves the queue early, later entries must still wait for earlier ones.
    const tail = before === undefined ? done : before.then(() => done);
    this.#tails.set(key, tail);
    try {
      if (before !== undefined) await (signal === undefined ? before : unlessAborted(before, signal));
      return await work();
    } finally {
      finish();
      void tail.then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    }
  }
}
