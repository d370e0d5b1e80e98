/**
 * The value that is waited for; an abort does not wait for work that ignores it. Rejects with the signal's
 * reason then, and with whatever the work rejects with.
 */
export function unlessAborted<Value>(work: Value | PromiseLike<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    // The work itself may have been what aborted, before there was anything to listen with.
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}
