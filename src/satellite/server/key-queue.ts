import { unlessAborted } from '../../invocation/unless-aborted.js';

/** Lets work of one key run one after the other, in order of arrival; other keys do not wait. */
export class KeyQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Rejects with the signal's reason where it is aborted before the turn has come. */
  async run<Value>(key: string, signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
    const before = this.#tails.get(key);
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    // Who leaves the queue early must not let those behind him pass those before him.
    const tail = before === undefined ? done : before.then(() => done);
    this.#tails.set(key, tail);
    try {
      if (before !== undefined) await unlessAborted(before, signal);
      return await work();
    } finally {
      finish();
      void tail.then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    }
  }
}
