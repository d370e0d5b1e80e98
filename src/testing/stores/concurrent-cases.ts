import type { CheckpointStore, TakenRun } from '../../contract/run-checkpoint.js';
import { expectSame } from '../conformance/expectations.js';
import type { OpenedCase } from './opened-cases.js';
import {
  type CheckpointBench,
  heldBy,
  LEASE,
  sampleCheckpoint,
  sampleEnd,
  sampleState,
  sampleStep,
  textsOf,
} from './store-bench.js';

const ROUNDS = 20;

function runIdsOf(taken: readonly TakenRun[]): readonly string[] {
  return taken.flatMap((outcome) => (outcome.status === 'claimed' ? [outcome.run.runId] : [])).sort();
}

/** The texts of those appends that were told that they took place. */
async function appendInTurn(store: CheckpointStore, runId: string): Promise<readonly string[]> {
  const told: string[] = [];
  for (let index = 0; index < 5; index += 1) {
    if (!(await store.append(heldBy('a', runId), [sampleStep(`${index}`)]))) break;
    told.push(`${index}`);
  }
  return told;
}

/** What happens at the same moment over two connections. */
export const CONCURRENT_CASES: readonly OpenedCase<CheckpointBench>[] = [
  {
    title: 'begin keeps one of two runs that begin with one id at once',
    async run(bench) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const id = `r${round}`;
        const began = await Promise.allSettled([bench.begin('a', id), bench.begin('b', id, bench.other)]);
        const statuses = began.map(({ status }) => status).sort();
        expectSame('the beginnings', statuses, ['fulfilled', 'rejected']);
        const winner = began[0]?.status === 'fulfilled' ? 'a' : 'b';
        expectSame('append of who began', await bench.append(heldBy(winner, id), 'one'), true);
      }
    },
  },
  {
    title: 'claimLost gives each lost run to one of many who look for one at once',
    async run(bench) {
      for (const runId of ['r', 's', 't']) await bench.begin('a', runId);
      await bench.advance(LEASE);
      const taken = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          bench.claimLost(`c${index}`, index % 2 === 0 ? bench.store : bench.other),
        ),
      );
      expectSame('the runs', runIdsOf(taken), ['r', 's', 't']);
    },
  },
  {
    title: 'seize shows all that the holder was told is kept, and the holder keeps nothing after it',
    async run(bench) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const runId = `r${round}`;
        await bench.begin('a', runId);
        const lease = { runId, claim: 'b', leaseMs: LEASE, from: 'anybody' } as const;
        const [told, taken] = await Promise.all([appendInTurn(bench.store, runId), bench.other.seize(lease)]);
        const seen = taken.status === 'claimed' ? textsOf(taken.run.entries) : [];
        expectSame('what who seized it sees', seen, told);
        expectSame('what is kept', await bench.done(runId), told);
      }
    },
  },
  {
    title:
      'append, end and release of a replaced holder are refused at the moment of the claim, or kept before it',
    async run(bench) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const runId = `r${round}`;
        await bench.begin('a', runId);
        await bench.advance(LEASE);
        const [isEnded, taken] = await Promise.all([
          bench.store.end(heldBy('a', runId), [sampleEnd('ended')]),
          bench.claimLost('b', bench.other),
        ]);
        expectSame('whether one of the two has it', isEnded, taken.status !== 'claimed');
        const { status } = (await bench.store.read(runId)) ?? {};
        expectSame('status', status, isEnded ? 'ended' : 'running');
        if (!isEnded) await bench.other.end(heldBy('b', runId), []);
      }
    },
  },
  {
    title: 'checkpoint goes on from a suspended run for one of two who claim it at once',
    async run(bench) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const runId = `r${round}`;
        await bench.save(sampleState(runId, 1));
        const continueRun = async (store: CheckpointStore, who: string) =>
          (await bench.claim(who, runId, store)).status === 'claimed' &&
          (await store.checkpoint(heldBy(who, runId), sampleCheckpoint(runId, [who], 1)));
        const went = await Promise.all([continueRun(bench.store, 'a'), continueRun(bench.other, 'b')]);
        expectSame('who goes on', [...went].sort(), [false, true]);
        expectSame('whose claim holds', await bench.append(heldBy(went[0] ? 'a' : 'b', runId), 'on'), true);
      }
    },
  },
  {
    title: 'removeOlderThan counts each run once where two forget at once',
    async run(bench) {
      for (let index = 0; index < 30; index += 1) await bench.save(sampleState(`r${index}`, 1));
      await bench.advance(LEASE);
      const counts = await Promise.all([
        bench.store.removeOlderThan(LEASE),
        bench.other.removeOlderThan(LEASE),
      ]);
      expectSame('the runs forgotten', counts[0] + counts[1], 30);
      expectSame('what is left', (await bench.store.list()).runs, []);
    },
  },
];
