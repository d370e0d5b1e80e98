/** Those who listen to a signal; for all of them, the signal has one listener. */
class Audience {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  readonly #tell = (): void => {
    this.#dismiss();
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  };

  add(listener: () => void): void {
    if (this.#listeners.size === 0) this.#signal.addEventListener('abort', this.#tell);
    this.#listeners.add(listener);
  }

  /** Node keeps a composite signal for as long as it has a listener. */
  remove(listener: () => void): void {
    if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#dismiss();
  }

  #dismiss(): void {
    this.#signal.removeEventListener('abort', this.#tell);
  }
}

/** Kept where nobody listens any more: a run's calls listen to its signal one after the other. */
const audiences = new WeakMap<AbortSignal, Audience>();

/**
 * Calls a listener when the signal is aborted, at once where it is already; gives what ends the listening.
 * However many listen to a signal, it has one listener: a signal that a thousand calls share would otherwise
 * be reported as a leak. Listeners must not throw.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  const audience = audienceOf(signal);
  // The same function may listen twice.
  const own = (): void => listener();
  audience.add(own);
  return () => audience.remove(own);
}

function audienceOf(signal: AbortSignal): Audience {
  const known = audiences.get(signal);
  if (known !== undefined) return known;
  const audience = new Audience(signal);
  audiences.set(signal, audience);
  return audience;
}
