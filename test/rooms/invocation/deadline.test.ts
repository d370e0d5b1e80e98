import { describe, expect, test } from '@jest/globals';
import { Deadline } from '../../../src/invocation/deadline.js';

const expired = (ms: number, more: (deadline: Deadline) => void = () => {}) =>
  new Promise<string>((resolve) => {
    const deadline = new Deadline(ms, () => resolve('expired'));
    more(deadline);
    setTimeout(() => resolve('still waiting'), 60);
  });

describe('a deadline', () => {
  test('that nobody meets expires', async () => {
    await expect(expired(5)).resolves.toBe('expired');
  });

  test('that is met at once, or later, does not', async () => {
    await expect(expired(5, (deadline) => deadline.meet())).resolves.toBe('still waiting');
    await expect(expired(20, (deadline) => setTimeout(() => deadline.meet(), 2))).resolves.toBe(
      'still waiting',
    );
  });

  test('of many expires or not as each was met, in whatever order', async () => {
    const outcomes = Array.from({ length: 50 }, (_, index) =>
      expired(5, (deadline) => {
        if (index % 3 === 0) deadline.meet();
        if (index % 3 === 1) queueMicrotask(() => deadline.meet());
      }),
    );
    const settled = await Promise.all(outcomes);
    expect(settled).toEqual(settled.map((_, index) => (index % 3 === 2 ? 'expired' : 'still waiting')));
  });

  test('may be met twice', async () => {
    await expect(expired(5, (deadline) => [deadline.meet(), deadline.meet()])).resolves.toBe('still waiting');
  });
});
