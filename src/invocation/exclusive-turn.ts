import { unlessAborted } from './unless-aborted.js';

/** Ends a turn; calling it again does nothing. */
export type EndTurn = () => void;

const tails = new WeakMap<object, Promise<void>>();

/**
 * Waits until all earlier turns on an object have ended, and begins the next. `setContext` and
 * `setCallback` store on a shared object, so calls of such an object must not overlap.
 * An abort ends the wait at once; the turn that was waited for is then given up by `EndTurn` as any other.
 */
export async function beginTurn(shared: object, signal?: AbortSignal): Promise<EndTurn> {
  const before = tails.get(shared);
  let end: EndTurn = () => {};
  const turn = new Promise<void>((resolve) => {
    end = resolve;
  });
  tails.set(shared, before ? before.then(() => turn) : turn);
  // Turns only end, they never fail: what rejects here is the abort, which ends the wait like a turn's end.
  if (before !== undefined) await (signal ? unlessAborted(before, signal).catch(() => {}) : before);
  return end;
}
