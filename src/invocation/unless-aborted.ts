import { onAbort } from '../kernel/on-abort.js';

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
