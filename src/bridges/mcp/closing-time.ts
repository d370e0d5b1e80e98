import { setTimeout as wait } from 'node:timers/promises';

/** An aborted call is answered within half a second, and its answer still has to be read. */
const CLOSING_MS = 1_000;

/** Does the steps of closing one after the other; what has not ended when the time is up is waited for no more. */
export async function inClosingTime(...steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const isDone = new AbortController();
  const limit = wait(CLOSING_MS, undefined, { signal: isDone.signal }).catch(() => {});
  try {
    for (const step of steps) await Promise.race([step(), limit]);
  } finally {
    isDone.abort();
  }
}
