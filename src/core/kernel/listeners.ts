import { callListener } from './async.js';

/** The subscribers of an event; a function that is added twice is called twice. */
export class Listeners<Event> {
  readonly #listeners = new Set<{ readonly receive: (event: Event) => void }>();

  get size(): number {
    return this.#listeners.size;
  }

  /** Returns a function that removes the listener. */
  add(receive: (event: Event) => void): () => void {
    const listener = { receive };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Calls those that are there now, unless another one removes them. Their errors go to `onError`; without it, they
   * are thrown.
   */
  notify(event: Event, onError?: (error: unknown) => void): void {
    for (const listener of [...this.#listeners]) {
      if (!this.#listeners.has(listener)) continue;
      if (onError === undefined) listener.receive(event);
      else callListener(() => listener.receive(event), onError);
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}
