import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { KeyQueue } from '../../../src/core/kernel/key-queue.js';

test('work of one key runs in order of arrival and does not delay work of other keys', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), leaves: fc.boolean(), fails: fc.boolean() })),
      fc.scheduler(),
      async (jobs, scheduler) => {
        const queue = new KeyQueue();
        const running = new Map<string, number>();
        const order: number[] = [];
        const ends = jobs.map(({ key, leaves, fails }, index) => {
          const controller = new AbortController();
          const isFirst = jobs.findIndex((job) => job.key === key) === index;
          const work = async () => {
            expect(running.get(key)).toBeUndefined();
            running.set(key, index);
            order.push(index);
            await scheduler.schedule(Promise.resolve());
            running.delete(key);
            if (fails) throw new Error('failed');
            return index;
          };
          const end = queue.run(key, work, controller.signal);
          if (leaves && !isFirst) controller.abort(new Error('left'));
          return end;
        });
        const settled = Promise.allSettled(ends);
        await scheduler.waitFor(settled);
        for (const [index, outcome] of (await settled).entries()) {
          const { key, leaves, fails } = jobs[index]!;
          const isFirst = jobs.findIndex((job) => job.key === key) === index;
          const reason = leaves && !isFirst ? 'left' : fails ? 'failed' : undefined;
          expect(outcome.status === 'rejected' ? outcome.reason.message : undefined).toBe(reason);
        }
        for (const key of ['a', 'b', 'c']) {
          const own = order.filter((index) => jobs[index]?.key === key);
          expect(own).toEqual([...own].sort((one, other) => one - other));
        }
      },
    ),
  );
});

test('an aborted waiting task does not change the order of the tasks behind it', async () => {
  const queue = new KeyQueue();
  const first = Promise.withResolvers<void>();
  const order: string[] = [];
  const running = queue.run('a', async () => {
    await first.promise;
    order.push('first');
  });
  const leave = new AbortController();
  const gone = queue.run('a', async () => void order.push('gone'), leave.signal);
  const third = queue.run('a', async () => void order.push('third'));
  leave.abort(new Error('left'));
  await expect(gone).rejects.toThrow('left');
  first.resolve();
  await Promise.all([running, third]);
  expect(order).toEqual(['first', 'third']);
});
