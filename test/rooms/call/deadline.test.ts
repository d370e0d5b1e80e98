import { describe, expect, test } from '@jest/globals';
import { Deadline } from '../../../src/call/run-body.js';

const expired = (ms: number, more: (deadline: Deadline) => void = () => {}) =>
  new Promise<string>((resolve) => {
    const deadline = new Deadline(ms, () => resolve('expired'));
    more(deadline);
    // After the deadline has set its own timer, however busy the machine is.
    setImmediate(() => setTimeout(() => resolve('still waiting'), 60));
  });

describe('a deadline', () => {
  test('that nobody cancels expires', async () => {
    await expect(expired(5)).resolves.toBe('expired');
  });

  test('that is cancelled at once, or later, does not', async () => {
    await expect(expired(5, (deadline) => deadline.cancel())).resolves.toBe('still waiting');
    await expect(expired(20, (deadline) => setTimeout(() => deadline.cancel(), 2))).resolves.toBe(
      'still waiting',
    );
  });

  test('of many expires or not as each was cancelled, in whatever order', async () => {
    const outcomes = Array.from({ length: 50 }, (_, index) =>
      expired(5, (deadline) => {
        if (index % 3 === 0) deadline.cancel();
        if (index % 3 === 1) queueMicrotask(() => deadline.cancel());
      }),
    );
    const settled = await Promise.all(outcomes);
    expect(settled).toEqual(settled.map((_, index) => (index % 3 === 2 ? 'expired' : 'still waiting')));
  });

  test('may be cancelled twice', async () => {
    await expect(expired(5, (deadline) => [deadline.cancel(), deadline.cancel()])).resolves.toBe(
      'still waiting',
    );
  });
});
