import { setTimeout as delay } from 'node:timers/promises';

/** Those who listen to a signal; for all of them, the signal has one listener. */
class Audience {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<{ readonly notify: () => void }>();
  /** The signal has its listener. */
  #isThere = false;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  readonly #notify = (): void => {
    this.#dismiss();
    // A listener may remove others, which a set then passes over.
    for (const { notify } of this.#listeners) notify();
    this.#listeners.clear();
  };

  /** Gives what ends the listening. */
  add(notify: () => void): () => void {
    const listener = { notify };
    this.#listeners.add(listener);
    if (!this.#isThere) this.#signal.addEventListener('abort', this.#notify);
    this.#isThere = true;
    return () => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0 || idle === this) return;
      if (idle === undefined) setImmediate(leaveIdle);
      else idle.leave();
      idle = this;
    };
  }

  /** Listens no more, unless somebody has come since: Node keeps a composite signal for as long as it has a listener. */
  leave(): void {
    if (this.#listeners.size === 0) this.#dismiss();
  }

  #dismiss(): void {
    this.#isThere = false;
    this.#signal.removeEventListener('abort', this.#notify);
  }
}

/**
 * The audience that lost its last listener last. It leaves its signal at the end of the event loop's turn: calls come
 * one after the other, and to add and remove a listener of a signal costs more than a call.
 */
let idle: Audience | undefined;

function leaveIdle(): void {
  const audience = idle;
  idle = undefined;
  audience?.leave();
}

/**
 * Where a signal keeps its audience, also where nobody listens any more. Not in a weak map: signals that come and go in
 * one would slow the collector.
 */
const AUDIENCE = Symbol('audience');

/**
 * Calls a listener when the signal is aborted, at once where it is already; gives what ends the listening.
 * However many listen to a signal, it has one listener: a signal that a thousand calls share would otherwise
 * be reported as a leak. Listeners must not throw.
 */
export function onAbort(signal: AbortSignal & { [AUDIENCE]?: Audience }, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  signal[AUDIENCE] ??= new Audience(signal);
  return signal[AUDIENCE].add(listener);
}

/**
 * Does work again and again until it is closed. The work returns the milliseconds until the next time. The returned
 * function ends that, and resolves when work that is under way has ended.
 */
export function repeat(
  work: (signal: AbortSignal) => Promise<number>,
  { firstMs = 0, ref = false } = {},
): () => Promise<void> {
  const closing = new AbortController();
  const { signal } = closing;
  const running = (async () => {
    for (let wait = firstMs; !signal.aborted; ) {
      if (wait > 0) await delay(Math.min(wait, MAX_TIMER_MS), undefined, { signal, ref }).catch(() => {});
      if (!signal.aborted) wait = await work(signal);
    }
  })();
  return () => {
    closing.abort();
    return running;
  };
}

/** Ends when everything that is ready to run has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The longest timer Node keeps (24 days); what is longer, `Infinity` too, would run out at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The value that is waited for; an abort does not wait for work that ignores it. Rejects with the signal's
 * reason then, and with whatever the work rejects with.
 */
export function unlessAborted<Value>(work: Value | PromiseLike<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    // The work itself may have been what aborted, before there was anything to listen with.
    const unfollow = onAbort(signal, () => reject(signal.reason));
    Promise.resolve(work).then(
      (value) => {
        unfollow();
        resolve(value);
      },
      (error) => {
        unfollow();
        reject(error);
      },
    );
  });
}

/** How long a call may wait for a decision. */
interface Limits {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
}

/** The value that is waited for, as long as an abort and the limit of the call let it be. */
export async function withinLimits<Value>(
  work: Value | PromiseLike<Value>,
  { signal, timeoutMs }: Limits,
): Promise<Value> {
  const isLater = typeof work === 'object' && work !== null && 'then' in work;
  const isLimited = timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY;
  if (!isLater || (signal === undefined && !isLimited)) return work;
  const late = Promise.withResolvers<never>();
  const expire = (): void =>
    late.reject(new DOMException(`There was no answer within ${timeoutMs} ms`, 'TimeoutError'));
  const timer = isLimited ? setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS)) : undefined;
  try {
    const answer = signal === undefined ? work : unlessAborted(work, signal);
    return await (timer === undefined ? answer : Promise.race([answer, late.promise]));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Calls a listener that must not harm the call that it observes: neither by throwing nor, where it is an async
 * function, by a rejection that nobody handles and that would end the process.
 */
export function callListener(listener: () => unknown, onError: (error: unknown) => void): void {
  try {
    const returned = listener();
    if (returned instanceof Promise) returned.catch(onError);
  } catch (error) {
    onError(error);
  }
}

/** Goes on with a value, at once if it is there already. */
export function andThen<Value, Next>(
  value: Value | Promise<Value>,
  next: (value: Value) => Next | Promise<Next>,
): Next | Promise<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Asks one item after the other until one gives something. Gives a promise only if one of them does. */
export function firstGiven<Item, Given>(
  items: readonly Item[],
  ask: (item: Item) => Given | undefined | Promise<Given | undefined>,
  from = 0,
): Given | undefined | Promise<Given | undefined> {
  for (let index = from; index < items.length; index += 1) {
    const given = ask(items[index] as Item);
    if (given instanceof Promise) return given.then((later) => later ?? firstGiven(items, ask, index + 1));
    if (given !== undefined) return given;
  }
  return undefined;
}

/** A signal that is aborted with the first of these; `undefined` where there are none. */
export function anySignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const [first] = signals;
  // Most of what runs has one signal at most.
  if (signals.every((signal) => signal === first)) return first;
  const given = [...new Set(signals.filter((signal) => signal !== undefined))];
  return given.length > 1 ? AbortSignal.any(given) : given[0];
}

/** Whether there is something to be awaited, of whatever promises it is. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Whether values come one after the other, and may be awaited. */
export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Waits for an end; one that takes longer than the limit is cut off, and waited for no longer. */
export async function closeWithin(
  closing: Promise<unknown>,
  { timeoutMs }: { readonly timeoutMs?: number | undefined },
  cut: () => unknown,
): Promise<void> {
  try {
    await withinLimits(closing, { signal: undefined, timeoutMs });
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'TimeoutError')) throw error;
    await cut();
  }
}
