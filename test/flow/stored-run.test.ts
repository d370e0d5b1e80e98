import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type RunState, type RunStore, resumeStoredRun, ToolwrightError } from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { runs } from '../setup/runs.js';
import { approveAll, countAndOrder, openShop, resuming, suspendIn } from './stored-run-story.js';
import { historyFaults } from './strict-history.js';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-stored-'));
const sqlite = new SqliteRunStore({ path: join(folder, 'runs.sqlite') });

afterAll(() => {
  sqlite.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Whether the run can be claimed. Releases it at once. */
async function isFree(store: RunStore, runId: string): Promise<boolean> {
  const { status } = await store.claim({ runId, claim: 'a look', leaseMs: 1000 });
  return status === 'claimed' && (await store.release({ runId, claim: 'a look' }));
}

describe.each<[string, RunStore]>([
  ['memory', new MemoryRunStore()],
  ['SQLite', sqlite],
])('a run stored in %s', (_name, store) => {
  test('continues after a resume, runs no sibling again, and is removed from the store when it ends', async () => {
    const shop = openShop();
    const { runId, pending, status } = await suspendIn(store, shop);
    expect(status).toBe('suspended');
    expect(shop.done).toEqual(['counted a']);
    const run = await resumeStoredRun(
      resuming(shop, { content: 'Ordered.' }),
      { store, runId },
      approveAll(pending),
      { data: { userId: 'u1' } },
    );
    expect(run).toMatchObject({ status: 'completed', content: 'Ordered.' });
    expect(shop.done).toEqual(['counted a', 'placed a']);
    expect(run.toolCalls.map(({ name }) => name)).toEqual(['count_stock', 'place_order']);
    expect(historyFaults(run.messages)).toEqual([]);
    expect(await store.load(runId)).toBeUndefined();
  });

  test('is stored again if it is suspended again, by missing answers or by later calls', async () => {
    const shop = openShop();
    const { runId, pending } = await suspendIn(store, shop, { skus: ['a', 'b'] });
    const [first, second] = approveAll(pending);
    const partly = await resumeStoredRun(resuming(shop), { store, runId }, [first!]);
    expect(partly.pending?.map(({ arguments: args }) => args)).toEqual([{ sku: 'b' }]);
    expect(await store.load(runId)).toEqual(partly.state);
    expect(shop.done).toEqual(['counted a']);
    const again = await resumeStoredRun(resuming(shop, countAndOrder('c')), { store, runId }, [second!]);
    expect(again.status).toBe('suspended');
    expect(await store.load(runId)).toEqual(again.state);
    const last = resuming(shop, { content: 'All three.' });
    const run = await resumeStoredRun(last, { store, runId }, approveAll(again.pending));
    expect(run.content).toBe('All three.');
    expect(shop.done).toEqual(['counted a', 'placed a', 'placed b', 'counted c', 'placed c']);
    expect(historyFaults(run.messages)).toEqual([]);
    expect(await store.load(runId)).toBeUndefined();
  });

  test('is unchanged and can be claimed after invalid answers', async () => {
    const shop = openShop();
    const { runId, pending, state } = await suspendIn(store, shop, { skus: ['a', 'b'] });
    const [right] = approveAll(pending);
    for (const wrong of [[{ id: 'nobody', approved: true }], [right!, right!], [right!, 5 as never]]) {
      await expect(resumeStoredRun(resuming(shop), { store, runId }, wrong)).rejects.toMatchObject({
        name: 'InvalidAnswer',
      });
      expect(await store.load(runId)).toEqual(state);
      expect(await isFree(store, runId)).toBe(true);
    }
    expect(shop.done).toEqual(['counted a']);
  });

  test('is unchanged and can be claimed after its state was tampered with or the config is invalid', async () => {
    const shop = openShop();
    const { runId, pending, state } = await suspendIn(store, shop, {
      stateSecret: 'secret that has at least thirty-two characters',
    });
    const answers = approveAll(pending);
    const changed = { ...(state as RunState), revision: 2, iterations: 0 };
    await store.save(changed);
    await expect(
      resumeStoredRun(
        { ...resuming(shop), stateSecret: 'secret that has at least thirty-two characters' },
        { store, runId },
        answers,
      ),
    ).rejects.toMatchObject({ name: 'InvalidState' });
    for (const config of [{ ...resuming(shop), provider: {} as never }, undefined as never])
      await expect(resumeStoredRun(config, { store, runId }, answers)).rejects.toThrow();
    expect(await store.load(runId)).toEqual(changed);
    expect(await isFree(store, runId)).toBe(true);
  });

  test('is not found if it never existed or has ended', async () => {
    const shop = openShop();
    const { runId, pending } = await suspendIn(store, shop);
    await resumeStoredRun(resuming(shop, { content: 'Done.' }), { store, runId }, approveAll(pending));
    for (const lost of [runId, 'never-there', '__proto__'])
      await expect(
        resumeStoredRun(resuming(shop), { store, runId: lost }, approveAll(pending)),
      ).rejects.toMatchObject({ name: 'RunNotFound', code: 516 });
  });

  test('is resumed by exactly one of many concurrent attempts', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(3), { minLength: 2, maxLength: 6 }), async (delays) => {
        const shop = openShop(async () => {
          for (let turn = 0; turn < 6; turn += 1) await new Promise(setImmediate);
        });
        const { runId, pending } = await suspendIn(store, shop);
        const outcomes = await Promise.all(
          delays.map(async (turns) => {
            for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
            const config = resuming(shop, { content: 'Ordered.' });
            return resumeStoredRun(config, { store, runId }, approveAll(pending)).then(
              ({ status }) => status,
              (error) => (ToolwrightError.is(error) ? error.name : error),
            );
          }),
        );
        expect(outcomes.filter((outcome) => outcome === 'completed')).toHaveLength(1);
        expect(outcomes.filter((outcome) => outcome === 'RunClaimed')).toHaveLength(delays.length - 1);
        expect(shop.done).toEqual(['counted a', 'placed a']);
      }),
      { numRuns: runs(25) },
    );
  });
});

describe('a resumed run that ends', () => {
  const store = new MemoryRunStore();

  test('at its limit is removed from the store, even if onLimit throws', async () => {
    for (const onLimit of ['return', 'throw'] as const) {
      const shop = openShop();
      const { runId, pending } = await suspendIn(store, shop);
      const config = { ...resuming(shop), maxIterations: 1, onLimit };
      const run = resumeStoredRun(config, { store, runId }, approveAll(pending));
      if (onLimit === 'throw') await expect(run).rejects.toMatchObject({ name: 'ToolLoopLimitReached' });
      else expect((await run).status).toBe('limit');
      expect(shop.done).toEqual(['counted a', 'placed a']);
      expect(store.load(runId)).toBeUndefined();
    }
  });

  test('by a failing provider or an abort is removed from the store, and its history is valid', async () => {
    const outside = new AbortController();
    const stopping = openShop(() => outside.abort());
    for (const [status, shop, signal] of [
      ['failed', openShop(), undefined],
      ['aborted', stopping, outside.signal],
    ] as const) {
      const { runId, pending } = await suspendIn(store, shop);
      const config = { ...resuming(shop, new Error('down')), signal };
      const run = await resumeStoredRun(config, { store, runId }, approveAll(pending));
      expect(run.status).toBe(status);
      expect(historyFaults(run.messages)).toEqual([]);
      expect(store.load(runId)).toBeUndefined();
    }
  });
});

test('resumeStoredRun stores the run in the store of the claim, not in that of the config', async () => {
  const [store, other] = [new MemoryRunStore(), new MemoryRunStore()];
  const shop = openShop();
  const { runId, pending } = await suspendIn(store, shop);
  const config = { ...resuming(shop, countAndOrder('b')), store: other };
  const run = await resumeStoredRun(config, { store, runId }, approveAll(pending));
  expect(run.status).toBe('suspended');
  expect(store.load(runId)).toEqual(run.state);
  expect(other.load(runId)).toBeUndefined();
});

test.each([[Number.NaN], [0], [-1], [Number.POSITIVE_INFINITY], ['10' as never]])(
  'resumeStoredRun refuses a lease of %p milliseconds and claims nothing',
  async (leaseMs) => {
    const store = new MemoryRunStore();
    const shop = openShop();
    const { runId, pending } = await suspendIn(store, shop);
    const run = resumeStoredRun(resuming(shop), { store, runId, leaseMs }, approveAll(pending));
    await expect(run).rejects.toMatchObject({ name: 'InvalidOptions' });
    expect(await isFree(store, runId)).toBe(true);
  },
);
