import type { RetentionAges, StoreWithRetention } from '../../../core/contract/retention.js';
import type { RunSummary } from '../../../core/contract/run-checkpoint.js';
import { expectSame, expectThat } from '../conformance/expectations.js';
import {
  type CheckpointBench,
  expectRefused,
  expectStatus,
  heldBy,
  LEASE_MS,
  leaseOf,
  MINUTE,
  NO_JSON,
  type OpenedCase,
  sampleCheckpoint,
  sampleEnd,
  sampleState,
  sampleStep,
  textsOf,
} from './store-bench.js';

const ODD_TEXT = "\u0000 \"'\\ \u2028 👩‍🚀 \ud800 '); DROP TABLE toolwright_runs; --";

/** Checks a time from the store: not before another time, and not much later. */
function expectSoonAfter(what: string, given: number | undefined, before: number): void {
  expectThat(
    given !== undefined && given >= before && given < before + MINUTE,
    `${what} is ${given}, and should be about ${before}`,
  );
}

/** Cases about the states of runs. */
const STATE_CASES: readonly OpenedCase<CheckpointBench>[] = [
  {
    title: 'begin keeps a run, held by who began it',
    async run(bench) {
      await bench.store.begin(leaseOf('a'), sampleCheckpoint('r', ['hello']));
      const kept = await bench.store.read('r');
      const { createdAt = 0, changedAt, leaseEnd, ...rest } = kept ?? {};
      expectSame('read', rest, {
        ...{ runId: 'r', status: 'running', generation: 1, entries: [] },
        state: sampleCheckpoint('r', ['hello']),
      });
      expectSoonAfter('changedAt', changedAt, createdAt);
      expectSoonAfter('leaseEnd', leaseEnd, createdAt + LEASE_MS);
      expectSame('load', await bench.store.load('r'), undefined);
      expectSame('claim', await bench.claim('b'), { status: 'taken' });
      expectSame('read of another', await bench.store.read('s'), undefined);
    },
  },
  ...(['running', 'suspended', 'ended'] as const).map((status) => ({
    title: `begin refuses an id that a ${status} run has`,
    async run(bench: CheckpointBench) {
      await bench.begin('a');
      if (status === 'suspended') await bench.store.release(heldBy('a'), sampleState('r', 1));
      if (status === 'ended') await bench.store.end(heldBy('a'), []);
      const before = await bench.store.read('r');
      await expectRefused('a second beginning', () => bench.begin('b'), 'RunClaimed');
      expectSame('read', await bench.store.read('r'), before);
    },
  })),
  {
    title: 'append adds entries in their order, as they were given',
    async run(bench) {
      await bench.begin('a');
      for (const texts of [['one', 'two'], [], [ODD_TEXT]])
        expectSame('append', await bench.append(heldBy('a'), ...texts), true);
      const wanted = ['one', 'two', ODD_TEXT].map(sampleStep);
      expectSame('entries', (await bench.store.read('r'))?.entries, wanted);
    },
  },
  {
    title: 'append and end add all entries or none',
    async run(bench) {
      await bench.begin('a');
      const entries = [sampleStep('one'), { ...sampleStep('two'), iterations: NO_JSON }];
      await expectRefused('an entry that is not JSON', () => bench.store.append(heldBy('a'), entries));
      await expectRefused('an entry that is not JSON', () => bench.store.end(heldBy('a'), entries));
      expectSame('entries', await bench.done(), []);
      expectSame('status', (await bench.store.read('r'))?.status, 'running');
    },
  },
  {
    title: 'claimLost replaces the holder, whose every write is refused and leaves the run alone',
    async run(bench) {
      await bench.begin('a');
      await bench.append(heldBy('a'), 'one');
      await bench.advance(LEASE_MS);
      expectStatus('claimLost', await bench.claimLost('b', bench.other), 'claimed');
      const before = await bench.store.read('r');
      expectSame('what the old claim is told', await bench.attempts(heldBy('a')), Array(7).fill(false));
      expectSame('read', await bench.store.read('r'), before);
      expectSame('append', await bench.append(heldBy('b'), 'two'), true);
      expectSame('entries', await bench.done(), ['one', 'two']);
    },
  },
  {
    title: 'append lets a holder who is late, but whom nobody has replaced, go on',
    async run(bench) {
      await bench.begin('a');
      await bench.advance(10 * LEASE_MS);
      expectSame('append', await bench.append(heldBy('a'), 'one'), true);
      expectSame('renew', await bench.store.renew(leaseOf('a')), true);
      expectStatus('claimLost', await bench.claimLost('b'), 'missing');
    },
  },
  {
    title: 'append and all other writes are refused for a run that is not there',
    async run(bench) {
      expectSame('what the claim is told', await bench.attempts(heldBy('a')), Array(7).fill(false));
      expectSame('seize', await bench.seize('a', 'anybody'), { status: 'missing' });
      expectSame('read', await bench.store.read('r'), undefined);
    },
  },
  {
    title: 'claim gives no lost run to who wants a suspended one',
    async run(bench) {
      await bench.begin('a');
      await bench.advance(LEASE_MS);
      expectSame('claim', await bench.claim('b'), { status: 'lost' });
      expectSame('append', await bench.append(heldBy('a'), 'one'), true);
    },
  },
  {
    title: 'claimLost gives out the run that was lost first, with what it had done',
    async run(bench) {
      await bench.begin('a', 'later');
      await bench.store.renew(leaseOf('a', 'later', 3 * LEASE_MS));
      await bench.begin('b', 'first');
      await bench.append(heldBy('b', 'first'), 'one');
      await bench.begin('c', 'alive');
      await bench.save(sampleState('suspended', 1));
      expectStatus('claimLost', await bench.claimLost('x'), 'missing');
      await bench.advance(3 * LEASE_MS);
      await bench.store.renew(leaseOf('c', 'alive'));
      const first = await bench.claimLost('x');
      const run = await bench.store.read('first');
      expectSame('claimLost', first, { status: 'claimed', run });
      expectSame('what it had done', textsOf(run?.entries ?? []), ['one']);
      expectSame('generation', run?.generation, 2);
      const second = await bench.claimLost('y');
      expectSame('claimLost', second.status === 'claimed' && second.run.runId, 'later');
      expectSame('claimLost', await bench.claimLost('z'), { status: 'missing' });
    },
  },
  {
    title: 'release makes a running run suspended, without what it had done',
    async run(bench) {
      await bench.begin('a');
      await bench.append(heldBy('a'), 'one');
      await bench.advance(MINUTE);
      expectSame('release', await bench.store.release(heldBy('a'), sampleState('r', 1)), true);
      const { createdAt = 0, changedAt, ...rest } = (await bench.store.read('r')) ?? {};
      expectSame('read', rest, {
        ...{ runId: 'r', status: 'suspended', generation: 1, entries: [] },
        state: sampleState('r', 1),
      });
      expectSoonAfter('changedAt', changedAt, createdAt + MINUTE);
      expectSame('load', await bench.store.load('r'), sampleState('r', 1));
      expectSame('append', await bench.append(heldBy('a'), 'two'), false);
    },
  },
  {
    title: 'checkpoint lets a suspended run go on from there',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      expectStatus('claim', await bench.claim('a'), 'claimed');
      const checkpoint = sampleCheckpoint('r', ['again'], 1);
      expectSame('checkpoint', await bench.store.checkpoint(heldBy('a'), checkpoint), true);
      expectSame('append', await bench.append(heldBy('a'), 'one'), true);
      const kept = await bench.store.read('r');
      expectSame('read', [kept?.status, kept?.generation, kept?.state], ['running', 1, checkpoint]);
      expectSame('entries', await bench.done(), ['one']);
      expectSame('load', await bench.store.load('r'), undefined);
    },
  },
  {
    title: 'checkpoint takes the place of what was kept before',
    async run(bench) {
      await bench.begin('a');
      await bench.append(heldBy('a'), 'one');
      await bench.store.checkpoint(heldBy('a'), sampleCheckpoint('r', ['on']));
      expectSame('entries', await bench.done(), []);
      await bench.append(heldBy('a'), 'two');
      expectSame('entries', await bench.done(), ['two']);
    },
  },
  {
    title: 'claimLost finds a running run at once that its holder gave back',
    async run(bench) {
      await bench.begin('a');
      expectSame('release', await bench.store.release(heldBy('a')), true);
      expectStatus('claimLost', await bench.claimLost('b'), 'claimed');
      expectSame('generation', (await bench.store.read('r'))?.generation, 2);
    },
  },
  {
    title: 'end keeps a run with all that it did, and lets nobody go on with it',
    async run(bench) {
      await bench.begin('a');
      await bench.append(heldBy('a'), 'one');
      await bench.advance(MINUTE);
      expectSame('end', await bench.store.end(heldBy('a'), [sampleEnd('done')]), true);
      const { createdAt = 0, changedAt, entries = [], ...rest } = (await bench.store.read('r')) ?? {};
      const state = sampleCheckpoint('r');
      expectSame('read', rest, { runId: 'r', status: 'ended', generation: 1, state });
      expectSame('entries', textsOf(entries), ['one', 'done']);
      expectSoonAfter('changedAt', changedAt, createdAt + MINUTE);
      expectSame('load', await bench.store.load('r'), undefined);
      expectSame('claim', await bench.claim('b'), { status: 'missing' });
      await bench.advance(LEASE_MS);
      expectSame('claimLost', await bench.claimLost('b'), { status: 'missing' });
      await expectRefused('a state of it', () => bench.save(sampleState('r', 9)), 'RunClaimed');
    },
  },
  {
    title: 'save takes no state of a run that is under way, held or lost',
    async run(bench) {
      await bench.begin('a');
      for (const ms of [0, LEASE_MS]) {
        await bench.advance(ms);
        await expectRefused('a state', () => bench.save(sampleState('r', 9)), 'RunClaimed');
      }
      expectSame('append', await bench.append(heldBy('a')), true);
    },
  },
  {
    title: 'seize hands over a run of any status, and from its holder where that is wanted',
    async run(bench) {
      await bench.begin('a');
      expectSame('seize', await bench.seize('b', 'nobody'), { status: 'taken' });
      expectStatus('seize', await bench.seize('b', 'anybody', bench.other), 'claimed');
      expectSame('append', await bench.append(heldBy('a'), 'one'), false);
      await bench.advance(LEASE_MS);
      expectStatus('seize', await bench.seize('c', 'nobody'), 'claimed');
      expectSame('generation', (await bench.store.read('r'))?.generation, 3);
      await bench.store.end(heldBy('c'), [sampleEnd('stopped')]);
      const ended = await bench.seize('d', 'nobody');
      expectSame('seize', ended.status === 'claimed' && ended.run.status, 'ended');
      expectSame('append', await bench.append(heldBy('d'), 'two'), true);
      expectSame('end', await bench.store.end(heldBy('d'), []), true);
      expectSame('entries', await bench.done(), ['stopped', 'two']);
    },
  },
  {
    title: 'expiredRuns gives the suspended runs that wait for an answer too late, turns apart from others',
    async run(bench) {
      const { store } = bench;
      // The method is optional.
      if (store.expiredRuns === undefined) return;
      const expired = async (of: 'turns' | 'others' = 'others', limit = 10) =>
        store.expiredRuns?.({ of, limit });
      await bench.save(sampleState('forever', 1));
      const now = (await store.read('forever'))?.changedAt ?? 0;
      const waiting = (runId: string, ...inMs: readonly number[]) => ({
        ...sampleState(runId, 1),
        pending: inMs.map((ms) => ({
          ...{ id: `${ms}`, callId: 'call_1', kind: 'approval' as const, tool: 'work', arguments: {} },
          expiresAt: new Date(now + ms).toISOString(),
        })),
      });
      await bench.save(waiting('later', 3 * LEASE_MS, 2 * LEASE_MS));
      await bench.save(waiting('first', LEASE_MS, 5 * LEASE_MS));
      await bench.save({ ...waiting('turn', LEASE_MS), turnOf: 'c' });
      for (const runId of ['held', 'over', 'on']) {
        await bench.begin(runId, runId);
        // A millisecond later, because runs that expire at the same time have no order.
        await store.release(heldBy(runId, runId), waiting(runId, LEASE_MS + 1));
        await bench.claim(runId, runId);
      }
      await store.end(heldBy('over', 'over'), []);
      await store.checkpoint(heldBy('on', 'on'), sampleCheckpoint('on'));
      await store.release(heldBy('on', 'on'));
      expectSame('at first', [await expired(), await expired('turns')], [[], []]);
      await bench.advance(LEASE_MS - MINUTE);
      await store.renew(leaseOf('held', 'held'));
      await bench.advance(2 * MINUTE);
      expectSame('what expired', await expired(), [{ runId: 'first' }]);
      expectSame('the turns', await expired('turns'), [{ runId: 'turn', conversationId: 'c' }]);
      await bench.advance(LEASE_MS);
      const all = [{ runId: 'first' }, { runId: 'held' }, { runId: 'later' }];
      expectSame('what expired then', await expired(), all);
      expectSame('no more than wanted', await expired('others', 1), all.slice(0, 1));
    },
  },
  {
    title: 'remove forgets a running run',
    async run(bench) {
      await bench.begin('a');
      await bench.append(heldBy('a'), 'one');
      expectSame('remove', await bench.store.remove(heldBy('a')), true);
      expectSame('read', await bench.store.read('r'), undefined);
      await bench.begin('b');
      const kept = await bench.store.read('r');
      expectSame('read', [kept?.generation, kept?.entries], [1, []]);
    },
  },
];

function ids(runs: readonly RunSummary[]): readonly string[] {
  return runs.map(({ runId }) => runId);
}

/** Cases about finding and removing runs. */
const LIST_CASES: readonly OpenedCase<CheckpointBench>[] = [
  {
    title: 'list gives runs by status in pages, the latest change first',
    async run(bench) {
      const change = async (work: () => unknown): Promise<void> => {
        await bench.advance(MINUTE);
        await work();
      };
      for (const runId of ['e1', 'e2', 's1', 'r1', 'r2', 'r3']) await change(() => bench.begin('a', runId));
      for (const runId of ['e2', 'e1']) await change(() => bench.store.end(heldBy('a', runId), []));
      await change(() => bench.store.release(heldBy('a', 's1'), sampleState('s1', 1)));
      await change(() => bench.append(heldBy('a', 'r1'), 'no change of its place'));
      expectSame('list', ids((await bench.store.list()).runs), ['s1', 'e1', 'e2', 'r3', 'r2', 'r1']);
      expectSame('ended', ids((await bench.store.list({ status: 'ended' })).runs), ['e1', 'e2']);
      const first = await bench.store.list({ status: 'running', limit: 2 });
      expectSame('the first page', ids(first.runs), ['r3', 'r2']);
      const second = await bench.store.list({ status: 'running', limit: 2, after: first.next ?? '' });
      expectSame('the second page', [ids(second.runs), second.next], [['r1'], undefined]);
      const { state: _state, entries: _entries, ...summary } = (await bench.store.read('r1')) ?? {};
      expectSame('a run in a list', second.runs[0], summary);
    },
  },
  {
    title: 'list gives each run once, page by page, by their ids where they changed at one moment',
    async run(bench) {
      const wanted = ['Z', 'a', 'b', 'c', 'd', 'é'];
      await Promise.all([...wanted].reverse().map((runId) => bench.begin('a', runId)));
      const found: RunSummary[] = [];
      let after: string | undefined;
      do {
        const page = await bench.store.list({ limit: 1, ...(after === undefined ? {} : { after }) });
        found.push(...page.runs);
        after = page.next;
      } while (after !== undefined && found.length <= wanted.length);
      expectSame('the runs', [...ids(found)].sort(), wanted);
      const inOrder = [...found].sort(
        (one, other) => other.changedAt - one.changedAt || (one.runId < other.runId ? -1 : 1),
      );
      expectSame('their order', ids(found), ids(inOrder));
    },
  },
  ...[{ limit: 0 }, { limit: 1001 }, { limit: 1.5 }, { status: 'lost' }, { after: 'r1' }, { page: 2 }].map(
    (query) => ({
      title: `list refuses the query ${JSON.stringify(query)}`,
      async run(bench: CheckpointBench) {
        await expectRefused('the query', () => bench.store.list(query as never), 'InvalidOptions');
      },
    }),
  ),
  {
    title: 'removeOlderThan forgets suspended and ended runs that nobody holds and that changed long ago',
    async run(bench) {
      for (const runId of ['running', 'lost', 'ended', 'suspended', 'claimed', 'late'])
        await bench.begin('a', runId);
      await bench.append(heldBy('a', 'ended'), 'one');
      await bench.store.end(heldBy('a', 'ended'), []);
      for (const runId of ['suspended', 'claimed'])
        await bench.store.release(heldBy('a', runId), sampleState(runId, 1));
      await bench.advance(LEASE_MS);
      await bench.store.renew(leaseOf('a', 'running'));
      await bench.claim('b', 'claimed');
      await bench.store.end(heldBy('a', 'late'), []);
      expectSame('removeOlderThan', await bench.store.removeOlderThan(2 * LEASE_MS), 0);
      expectSame('removeOlderThan', await bench.store.removeOlderThan(LEASE_MS), 2);
      const left = [...ids((await bench.store.list()).runs)].sort();
      expectSame('what is left', left, ['claimed', 'late', 'lost', 'running']);
    },
  },
  {
    title: 'retention removes runs that ended long ago, and none that waits, is under way or is held',
    async run(bench) {
      const { retention } = bench.store as Partial<StoreWithRetention>;
      // The method is optional.
      if (retention === undefined) return;
      const remove = (ages: RetentionAges) => retention.call(bench.store, ages);
      for (const runId of ['running', 'ended', 'suspended', 'late', 'held']) await bench.begin('a', runId);
      for (const runId of ['ended', 'held']) await bench.store.end(heldBy('a', runId), []);
      await bench.store.release(heldBy('a', 'suspended'), sampleState('suspended', 1));
      await bench.advance(LEASE_MS);
      await bench.store.end(heldBy('a', 'late'), []);
      await bench.store.seize({ ...leaseOf('b', 'held'), from: 'nobody' });
      const nothing = { runs: 0, jobs: 0, events: 0, conversations: 0 };
      expectSame('without an age', await remove({}), nothing);
      expectSame('too early', await remove({ runs: 2 * LEASE_MS }), nothing);
      expectSame(
        'removed',
        await remove({ runs: LEASE_MS, jobs: LEASE_MS, events: LEASE_MS, conversations: LEASE_MS }),
        {
          ...nothing,
          runs: 1,
        },
      );
      const left = [...ids((await bench.store.list()).runs)].sort();
      expectSame('what is left', left, ['held', 'late', 'running', 'suspended']);
      for (const age of [-1, '1', Number.NaN])
        await expectRefused('the age', () => remove({ runs: age as number }), 'InvalidOptions');
    },
  },
  ...[null, undefined, Number.NaN, '1000', -1].map((age) => ({
    title: `removeOlderThan forgets nothing for the age ${String(age)}`,
    async run(bench: CheckpointBench) {
      await bench.save(sampleState('r', 1));
      const remove = () => bench.store.removeOlderThan(age as number);
      await expectRefused('the age', remove, 'InvalidOptions');
      expectSame('revision', await bench.revisionKept(), 1);
    },
  })),
];

/** Cases of `CheckpointStore`: storing, finding and removing runs. */
export const CHECKPOINT_CASES = [...STATE_CASES, ...LIST_CASES];
