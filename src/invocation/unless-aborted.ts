import { onAbort } from '../kernel/on-abort.js';
import { MAX_TIMER_MS } from './max-timer-ms.js';

/**
 * The value that is waited for; an abort does not wait for work that ignores it. Rejects with the signal's
 * reason then, and with whatever the work rejects with.
 */
export function unlessAborted<Value>(work: Value | PromiseLike<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    // The work itself may have been what aborted, before there was anything to listen with.
    const unfollow = onAbort(signal, () => reject(signal.reason));
    Promise.resolve(work).then(resolve, reject).finally(unfollow);
  });
}

/** How long a call may wait for somebody's decision. */
export interface Limits {
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
