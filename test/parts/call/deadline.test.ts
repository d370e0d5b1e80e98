import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { atEndOfTurn } from '../../../src/core/kernel/async.js';

/** As calls begin their limits. */
const startDeadline = (ms: number, expire: () => void): (() => void) =>
  atEndOfTurn(() => {
    const timer = setTimeout(expire, ms);
    return () => clearTimeout(timer);
  });

const expired = (ms: number, more: (cancel: () => void) => void = () => {}) =>
  new Promise<string>((resolve) => {
    more(startDeadline(ms, () => resolve('expired')));
    // After the deadline has set its own timer, however busy the machine is.
    setImmediate(() => setTimeout(() => resolve('still waiting'), 60));
  });

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const heldMegabytes = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed / 1_000_000;
};

/** What expires holds a megabyte, as calls hold their arguments and results. */
const largeDeadline = () => {
  const held = new Array<number>(125_000).fill(0.5);
  return startDeadline(1_000, () => held.fill(1));
};

describe('a deadline', () => {
  test('that nobody cancels expires', async () => {
    await expect(expired(5)).resolves.toBe('expired');
  });

  test('that is cancelled at once, or later, does not', async () => {
    await expect(expired(5, (cancel) => cancel())).resolves.toBe('still waiting');
    await expect(expired(20, (cancel) => setTimeout(cancel, 2))).resolves.toBe('still waiting');
  });

  test('of many expires or not as each was cancelled, in whatever order', async () => {
    const outcomes = Array.from({ length: 50 }, (_, index) =>
      expired(5, (cancel) => {
        if (index % 3 === 0) cancel();
        if (index % 3 === 1) queueMicrotask(cancel);
      }),
    );
    const settled = await Promise.all(outcomes);
    expect(settled).toEqual(settled.map((_, index) => (index % 3 === 2 ? 'expired' : 'still waiting')));
  });

  test('may be cancelled twice', async () => {
    await expect(expired(5, (cancel) => [cancel(), cancel()])).resolves.toBe('still waiting');
  });

  test('of work that was done side by side within a turn is not kept until the turn ends', () => {
    const before = heldMegabytes();
    for (let turn = 0; turn < 3; turn += 1)
      for (const cancel of Array.from({ length: 10 }, largeDeadline)) cancel();
    expect(heldMegabytes() - before).toBeLessThan(5);
  });
});
