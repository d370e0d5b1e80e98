import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CheckpointStore, RunClaim, RunSummary, SeizeLease } from 'toolwright';
import { endEntry, runCheckpoint, stepEntry } from './run-checkpoint.js';
import { runState } from './run-state.js';

/** A store under test, empty, with `now` as its clock. */
export type OpenCheckpointStore = (now: () => number) => {
  readonly store: CheckpointStore;
  close(): void;
};

const LEASE = 1000;
const START = 1_700_000_000_000;

/** What every {@link CheckpointStore} must do beside what a run store does. */
export function describeCheckpointStore(name: string, open: OpenCheckpointStore): void {
  describe(`${name} as a store of runs under way`, () => {
    let time = 0;
    let opened: ReturnType<OpenCheckpointStore>;
    let store: CheckpointStore;

    beforeEach(() => {
      time = START;
      opened = open(() => time);
      store = opened.store;
    });

    afterEach(() => opened.close());

    const lease = (who: string, runId = 'r', leaseMs = LEASE) => ({ runId, claim: who, leaseMs });
    const asHeld = (who: string, runId = 'r'): RunClaim => ({ runId, claim: who });
    const begin = async (who: string, runId = 'r') => store.begin(lease(who, runId), runCheckpoint(runId));
    const claimLost = (who: string) => store.claimLost({ claim: who, leaseMs: LEASE });
    const seize = (who: string, from: SeizeLease['from'], runId = 'r') =>
      store.seize({ ...lease(who, runId), from });

    test('keeps a run that begins, held by who began it', async () => {
      await store.begin(lease('a'), runCheckpoint('r', ['hello']));
      expect(await store.read('r')).toEqual({
        runId: 'r',
        status: 'running',
        generation: 1,
        leaseEnd: START + LEASE,
        createdAt: START,
        changedAt: START,
        state: runCheckpoint('r', ['hello']),
        entries: [],
      });
      expect(await store.load('r')).toBeUndefined();
      expect(await store.claim(lease('b'))).toEqual({ status: 'taken' });
      expect(await store.read('s')).toBeUndefined();
    });

    test.each(['running', 'suspended', 'ended'])('begins no run whose id a %s one has', async (status) => {
      await begin('a');
      if (status === 'suspended') await store.release(asHeld('a'), runState('r', 1));
      if (status === 'ended') await store.end(asHeld('a'), []);
      const before = await store.read('r');
      await expect(begin('b')).rejects.toMatchObject({ name: 'RunClaimed' });
      expect(await store.read('r')).toEqual(before);
    });

    test('adds entries in their order, as they were given', async () => {
      await begin('a');
      const odd = stepEntry("\u0000 \"'\\ \u2028 👩‍🚀 \ud800 '); DROP TABLE toolwright_runs; --");
      expect(await store.append(asHeld('a'), [stepEntry('one'), stepEntry('two')])).toBe(true);
      expect(await store.append(asHeld('a'), [])).toBe(true);
      expect(await store.append(asHeld('a'), [odd])).toBe(true);
      expect((await store.read('r'))?.entries).toEqual([stepEntry('one'), stepEntry('two'), odd]);
    });

    test('adds all entries or none', async () => {
      await begin('a');
      const broken = { ...endEntry('x'), iterations: 1n } as unknown as ReturnType<typeof endEntry>;
      await expect((async () => store.append(asHeld('a'), [stepEntry('one'), broken]))()).rejects.toThrow(
        TypeError,
      );
      await expect((async () => store.end(asHeld('a'), [stepEntry('one'), broken]))()).rejects.toThrow(
        TypeError,
      );
      expect(await store.read('r')).toMatchObject({ status: 'running', entries: [] });
    });

    test('refuses every write of a holder who was replaced, and leaves the run alone', async () => {
      await begin('a');
      await store.append(asHeld('a'), [stepEntry('one')]);
      time += LEASE;
      expect((await claimLost('b')).status).toBe('claimed');
      const before = await store.read('r');
      expect(await allWrites(store, asHeld('a'))).toEqual(Array(7).fill(false));
      expect(await store.read('r')).toEqual(before);
      expect(await store.append(asHeld('b'), [stepEntry('two')])).toBe(true);
    });

    test('lets a holder who is late, but whom nobody has replaced, go on', async () => {
      await begin('a');
      time += 10 * LEASE;
      expect(await store.append(asHeld('a'), [stepEntry('one')])).toBe(true);
      expect(await store.renew(lease('a'))).toBe(true);
      expect((await claimLost('b')).status).toBe('missing');
    });

    test('refuses every write about a run that is not there', async () => {
      expect(await allWrites(store, asHeld('a'))).toEqual(Array(7).fill(false));
      expect(await seize('a', 'anybody')).toEqual({ status: 'missing' });
      expect(await store.read('r')).toBeUndefined();
    });

    test('gives no lost run to who wants a suspended one', async () => {
      await begin('a');
      time += LEASE;
      expect(await store.claim(lease('b'))).toEqual({ status: 'lost' });
      expect(await store.append(asHeld('a'), [stepEntry('one')])).toBe(true);
    });

    test('gives out the run that was lost first, with what it had done', async () => {
      await begin('a', 'later');
      await store.renew(lease('a', 'later', 3 * LEASE));
      await begin('b', 'first');
      await store.append(asHeld('b', 'first'), [stepEntry('one')]);
      await begin('c', 'alive');
      await store.save(runState('suspended', 1));
      expect((await claimLost('x')).status).toBe('missing');
      time += 3 * LEASE;
      await store.renew(lease('c', 'alive'));
      const first = await claimLost('x');
      expect(first).toMatchObject({ status: 'claimed', run: { runId: 'first', generation: 2 } });
      expect(first.status === 'claimed' && first.run).toEqual(await store.read('first'));
      expect(first.status === 'claimed' && first.run.entries).toEqual([stepEntry('one')]);
      expect(await claimLost('y')).toMatchObject({ status: 'claimed', run: { runId: 'later' } });
      expect(await claimLost('z')).toEqual({ status: 'missing' });
    });

    test('gives each lost run to one of many who look for one at once', async () => {
      for (const runId of ['r', 's', 't']) await begin('a', runId);
      time += LEASE;
      const taken = await Promise.all(Array.from({ length: 10 }, (_, index) => claimLost(`c${index}`)));
      const runIds = taken.flatMap((outcome) => (outcome.status === 'claimed' ? [outcome.run.runId] : []));
      expect(runIds.sort()).toEqual(['r', 's', 't']);
    });

    test('makes a running run suspended, without what it had done', async () => {
      await begin('a');
      await store.append(asHeld('a'), [stepEntry('one')]);
      time += 5;
      expect(await store.release(asHeld('a'), runState('r', 1))).toBe(true);
      expect(await store.read('r')).toEqual({
        ...{ runId: 'r', status: 'suspended', generation: 1, createdAt: START, changedAt: START + 5 },
        ...{ state: runState('r', 1), entries: [] },
      });
      expect(await store.load('r')).toEqual(runState('r', 1));
      expect(await store.append(asHeld('a'), [stepEntry('two')])).toBe(false);
    });

    test('lets a suspended run go on from a checkpoint', async () => {
      await store.save(runState('r', 1));
      expect((await store.claim(lease('a'))).status).toBe('claimed');
      expect(await store.checkpoint(asHeld('a'), runCheckpoint('r', ['again'], 1))).toBe(true);
      expect(await store.append(asHeld('a'), [stepEntry('one')])).toBe(true);
      expect(await store.read('r')).toMatchObject({
        status: 'running',
        generation: 1,
        state: { status: 'running', revision: 1 },
        entries: [stepEntry('one')],
      });
      expect(await store.load('r')).toBeUndefined();
    });

    test('finds a running run at once that its holder gave back', async () => {
      await begin('a');
      expect(await store.release(asHeld('a'))).toBe(true);
      expect(await claimLost('b')).toMatchObject({ status: 'claimed', run: { runId: 'r', generation: 2 } });
    });

    test('keeps a run that has ended, with all that it did, and lets nobody go on with it', async () => {
      await begin('a');
      await store.append(asHeld('a'), [stepEntry('one')]);
      time += 5;
      expect(await store.end(asHeld('a'), [endEntry('done')])).toBe(true);
      expect(await store.read('r')).toEqual({
        ...{ runId: 'r', status: 'ended', generation: 1, createdAt: START, changedAt: START + 5 },
        ...{ state: runCheckpoint('r'), entries: [stepEntry('one'), endEntry('done')] },
      });
      expect(await store.load('r')).toBeUndefined();
      expect(await store.claim(lease('b'))).toEqual({ status: 'missing' });
      time += LEASE;
      expect(await claimLost('b')).toEqual({ status: 'missing' });
      await expect((async () => store.save(runState('r', 9)))()).rejects.toMatchObject({
        name: 'RunClaimed',
      });
    });

    test('takes no state of a run that is under way, held or lost', async () => {
      await begin('a');
      for (const ms of [0, LEASE]) {
        time += ms;
        await expect((async () => store.save(runState('r', 9)))()).rejects.toMatchObject({
          name: 'RunClaimed',
        });
      }
      expect(await store.append(asHeld('a'), [])).toBe(true);
    });

    test('hands over a run of any status, and from its holder where that is wanted', async () => {
      await begin('a');
      expect(await seize('b', 'nobody')).toEqual({ status: 'taken' });
      expect(await seize('b', 'anybody')).toMatchObject({ status: 'claimed', run: { generation: 2 } });
      expect(await store.append(asHeld('a'), [stepEntry('one')])).toBe(false);
      time += LEASE;
      expect(await seize('c', 'nobody')).toMatchObject({ status: 'claimed', run: { generation: 3 } });
      await store.end(asHeld('c'), [endEntry('stopped')]);
      expect(await seize('d', 'nobody')).toMatchObject({ status: 'claimed', run: { status: 'ended' } });
      expect(await store.append(asHeld('d'), [stepEntry('two')])).toBe(true);
      expect(await store.end(asHeld('d'), [])).toBe(true);
      expect((await store.read('r'))?.entries).toEqual([endEntry('stopped'), stepEntry('two')]);
    });

    test('lists runs by status in pages, the latest change first', async () => {
      for (const runId of ['e1', 'e2', 's1', 'r1', 'r2', 'r3']) {
        time += 1;
        await begin('a', runId);
      }
      for (const runId of ['e2', 'e1']) {
        time += 1;
        await store.end(asHeld('a', runId), []);
      }
      await store.release(asHeld('a', 's1'), runState('s1', 1));
      await store.append(asHeld('a', 'r1'), [stepEntry('no change of its place')]);
      const ids = (runs: readonly RunSummary[]) => runs.map(({ runId }) => runId);
      expect(ids((await store.list()).runs)).toEqual(['e1', 's1', 'e2', 'r3', 'r2', 'r1']);
      expect(ids((await store.list({ status: 'ended' })).runs)).toEqual(['e1', 'e2']);
      const first = await store.list({ status: 'running', limit: 2 });
      expect(ids(first.runs)).toEqual(['r3', 'r2']);
      const second = await store.list({ status: 'running', limit: 2, after: first.next! });
      expect(ids(second.runs)).toEqual(['r1']);
      expect(second.next).toBeUndefined();
      const [r1] = second.runs;
      const { state: _state, entries: _entries, ...summary } = (await store.read('r1'))!;
      expect(r1).toEqual(summary);
    });

    test('lists runs of the same moment by their ids, none twice', async () => {
      for (const runId of ['b', 'a', 'd', 'c', 'é', 'Z']) await begin('a', runId);
      const found: string[] = [];
      let after: string | undefined;
      do {
        const page = await store.list({ limit: 1, ...(after === undefined ? {} : { after }) });
        found.push(...page.runs.map(({ runId }) => runId));
        after = page.next;
      } while (after !== undefined);
      expect(found).toEqual(['Z', 'a', 'b', 'c', 'd', 'é']);
    });

    test.each([
      { limit: 0 },
      { limit: 1001 },
      { limit: 1.5 },
      { status: 'lost' },
      { after: 'r1' },
      { page: 2 },
    ])('lists nothing for the query %j', async (query) => {
      await expect((async () => store.list(query as never))()).rejects.toMatchObject({
        name: 'InvalidOptions',
      });
    });

    test('forgets suspended and ended runs that changed long ago, and no running one', async () => {
      for (const runId of ['running', 'lost', 'ended', 'suspended', 'claimed', 'late'])
        await begin('a', runId);
      await store.end(asHeld('a', 'ended'), []);
      for (const runId of ['suspended', 'claimed'])
        await store.release(asHeld('a', runId), runState(runId, 1));
      time += LEASE;
      await store.renew(lease('a', 'running'));
      await store.claim(lease('b', 'claimed'));
      await store.end(asHeld('a', 'late'), []);
      expect(await store.removeOlderThan(LEASE)).toBe(2);
      const { runs } = await store.list();
      expect(runs.map(({ runId }) => runId).sort()).toEqual(['claimed', 'late', 'lost', 'running']);
    });

    test('forgets a running run that its holder removes', async () => {
      await begin('a');
      expect(await store.remove(asHeld('a'))).toBe(true);
      expect(await store.read('r')).toBeUndefined();
      await begin('b');
      expect(await store.read('r')).toMatchObject({ generation: 1, entries: [] });
    });
  });
}

/** What a claim that may be lost is told by every method that writes. */
async function allWrites(store: CheckpointStore, claim: RunClaim): Promise<readonly boolean[]> {
  return [
    await store.renew({ ...claim, leaseMs: LEASE }),
    await store.append(claim, [stepEntry('late')]),
    await store.checkpoint(claim, runCheckpoint(claim.runId, ['late'])),
    await store.release(claim),
    await store.release(claim, runState(claim.runId, 9)),
    await store.end(claim, [endEntry('late')]),
    await store.remove(claim),
  ];
}
