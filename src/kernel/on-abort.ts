/** Who listens to a signal, and what the signal calls for all of them. */
interface Audience {
  readonly listeners: Set<() => void>;
  readonly tell: () => void;
}

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
  audience.listeners.add(own);
  return () => {
    // Node keeps a composite signal for as long as it has a listener.
    if (audience.listeners.delete(own) && audience.listeners.size === 0) dismiss(signal, audience);
  };
}

function audienceOf(signal: AbortSignal): Audience {
  const known = audiences.get(signal);
  if (known !== undefined) return known;
  const listeners = new Set<() => void>();
  const audience: Audience = {
    listeners,
    tell: () => {
      dismiss(signal, audience);
      for (const listener of listeners) listener();
    },
  };
  audiences.set(signal, audience);
  signal.addEventListener('abort', audience.tell);
  return audience;
}

function dismiss(signal: AbortSignal, audience: Audience): void {
  if (audiences.get(signal) === audience) audiences.delete(signal);
  signal.removeEventListener('abort', audience.tell);
}
