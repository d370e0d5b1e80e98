import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from '../../../src/index.js';

const forever = new Promise<never>(() => {});

/** Runs work as a call with a limit in milliseconds. */
async function outcomeOf(timeoutMs: number, work: () => Promise<unknown>): Promise<string> {
  const tools = new ToolRegistry({ toolTimeoutMs: timeoutMs });
  tools.register(defineTool({ name: 'work', description: 'Works.', execute: work }));
  const { record } = await tools.invoke({ id: 'c1', name: 'work', arguments: {} });
  return record.status;
}

const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const heldMegabytes = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed / 1_000_000;
};

describe('a timeout', () => {
  test('ends a call that takes longer', async () => {
    await expect(outcomeOf(5, () => forever)).resolves.toBe('timed_out');
  });

  test('does not end a call that ends in time', async () => {
    await expect(outcomeOf(5, () => Promise.resolve('done'))).resolves.toBe('success');
    await expect(outcomeOf(5_000, () => after(2))).resolves.toBe('success');
  });

  test('ends only the calls that take longer, whatever the order in which the others end', async () => {
    const works = [() => forever, () => Promise.resolve(), () => new Promise<void>(queueMicrotask)];
    const calls = Array.from({ length: 51 }, (_, index) =>
      outcomeOf(5, works[index % 3] as () => Promise<unknown>),
    );
    const expected = ['timed_out', 'success', 'success'];
    expect(await Promise.all(calls)).toEqual(calls.map((_, index) => expected[index % 3]));
  });

  test('does not retain data of calls that end within one turn of the event loop', async () => {
    const large = async () => ({ values: new Array<number>(125_000).fill(0.5), text: 'done' });
    const outcomes = [];
    const before = heldMegabytes();
    for (let call = 0; call < 30; call += 1)
      outcomes.push(
        await outcomeOf(60_000, async () => {
          const { text } = await large();
          return text;
        }),
      );
    expect(new Set(outcomes)).toEqual(new Set(['success']));
    expect(heldMegabytes() - before).toBeLessThan(5);
  });
});
