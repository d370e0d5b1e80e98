import { setTimeout as delay } from 'node:timers/promises';
import { isObject } from './json.js';

/** The listeners of a signal, which share one listener on the signal itself. */
class Audience {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<{ readonly notify: () => void }>();
  /** Whether the signal has its listener. */
  #isThere = false;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  readonly #notify = (): void => {
    this.#dismiss();
    // A listener may remove others; the set then skips them.
    for (const { notify } of this.#listeners) notify();
    this.#listeners.clear();
  };

  /** Returns a function that removes the listener. */
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

  /**
   * Removes the signal's listener, unless a new listener was added: Node retains a composite signal as long as it has
   * a listener.
   */
  leave(): void {
    if (this.#listeners.size === 0) this.#dismiss();
  }

  #dismiss(): void {
    this.#isThere = false;
    this.#signal.removeEventListener('abort', this.#notify);
  }
}

/**
 * The audience that most recently lost its last listener. It is removed from its signal at the end of the event
 * loop's turn, because adding and removing a signal listener costs more than a call.
 */
let idle: Audience | undefined;

function leaveIdle(): void {
  const audience = idle;
  idle = undefined;
  audience?.leave();
}

/**
 * The property of a signal that stores its audience, also without listeners. A weak map would slow down garbage
 * collection of short-lived signals.
 */
const AUDIENCE = Symbol('audience');

/**
 * Calls a listener when the signal is aborted, or immediately if it already is. Returns a function that removes the
 * listener. All listeners share one listener on the signal, because Node would report a signal with a thousand
 * listeners as a leak. Listeners must not throw.
 */
export function onAbort(signal: AbortSignal & { [AUDIENCE]?: Audience }, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  signal[AUDIENCE] ??= new Audience(signal);
  return signal[AUDIENCE].add(listener);
}

/** The calls that share one promise of the end of the event loop's turn. */
interface TurnEnd {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  /** How many have begun to wait for it, and how many still wait. */
  begun: number;
  open: number;
}

let turn: TurnEnd | undefined;
let isScheduled = false;

/** A promise retains a little of everything that has waited for it, until the end of the turn. */
const MOST_WAITING = 100;

/**
 * Begins something at the end of the event loop's turn, unless it is ended before. `begin` must not throw, and returns
 * a function that ends it; so does this function, whose result must be called once. Most calls end within a turn, and
 * a timer or a listener of a signal costs as much as the rest of a call.
 */
export function atEndOfTurn(begin: () => () => void): () => void {
  turn ??= { ...Promise.withResolvers<void>(), begun: 0, open: 0 };
  const own = turn;
  own.begun += 1;
  own.open += 1;
  let isOver = false;
  let late: (() => () => void) | undefined = begin;
  let end: (() => void) | undefined;
  // A promise, unlike the shared callback, keeps the async context of the caller.
  void own.promise.then(() => {
    end = late?.();
    // It may have ended while it began.
    if (isOver) end?.();
  });
  if (!isScheduled) setImmediate(endTurn);
  isScheduled = true;
  return () => {
    isOver = true;
    late = undefined;
    own.open -= 1;
    if (end !== undefined) end();
    else if (own === turn && own.open === 0 && own.begun >= MOST_WAITING) turn = undefined;
  };
}

function endTurn(): void {
  isScheduled = false;
  const { resolve } = turn ?? {};
  turn = undefined;
  resolve?.();
}

/**
 * Repeats work until it is closed. The work returns the milliseconds until the next time. The returned function stops
 * the repetition, and resolves when running work has ended.
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

/** Work that starts when its result is first needed. After a failure, the next use starts it again. */
export class OnFirstUse<Value> {
  /** The work that was started, unless it has failed. */
  started: Promise<Value> | undefined;

  constructor(private readonly work: () => Promise<Value>) {}

  get(): Promise<Value> {
    this.started ??= this.work().catch((error: unknown) => {
      this.started = undefined;
      throw error;
    });
    return this.started;
  }
}

/** Resolves when everything that is ready to run has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The longest timer of Node (24 days); a longer one, including `Infinity`, would fire immediately. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Awaits a value, or rejects with the signal's reason on an abort, even if the work ignores the signal. Rejections of
 * the work are passed on.
 */
export function unlessAborted<Value>(work: Value | PromiseLike<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    // The work itself may have aborted the signal before the listener was added.
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

/** Limits on how long a call may wait for a decision. */
interface Limits {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
}

/** Awaits a value, until an abort or the timeout of the call. */
export async function withinLimits<Value>(
  work: Value | PromiseLike<Value>,
  { signal, timeoutMs }: Limits,
): Promise<Value> {
  const isLater = isThenable(work);
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
 * Calls a listener whose errors must not affect the observed call. Catches exceptions, and rejections of async
 * listeners, which would otherwise end the process.
 */
export function callListener(listener: () => unknown, onError: (error: unknown) => void): void {
  try {
    const returned = listener();
    if (returned instanceof Promise) returned.catch(onError);
  } catch (error) {
    onError(error);
  }
}

/** Continues with a value, synchronously if it is not a promise. */
export function andThen<Value, Next>(
  value: Value | Promise<Value>,
  next: (value: Value) => Next | Promise<Next>,
): Next | Promise<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Calls a function for each item until it returns a value. Returns a promise only if the function does. */
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

/** A signal that is aborted with the first of these; `undefined` if all are. */
export function anySignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter(
    (signal, index) => signal !== undefined && signals.indexOf(signal) === index,
  ) as AbortSignal[];
  return given.length > 1 ? AbortSignal.any(given) : given[0];
}

/** Whether a value can be awaited, including promises of other libraries. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && 'then' in value && typeof value.then === 'function';
}

/** Whether values come one after the other, and may be awaited. */
export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return isObject(value) && Symbol.asyncIterator in value;
}

/** Waits for closing to finish. After the limit, it is cut off and no longer awaited. */
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
