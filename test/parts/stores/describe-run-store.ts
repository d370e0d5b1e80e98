import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { CheckpointStore } from 'toolwright';
import { type OpenedStore, runStoreConformance } from 'toolwright/testing';
import { runs } from '../../setup/runs.js';
import { ClaimLedger, randomSteps } from './claim-ledger.js';
import { runCheckpoint } from './run-checkpoint.js';

/** The tests of every run store: the conformance suite, and claims in random order. */
export function describeRunStore(
  name: string,
  open: () => OpenedStore | Promise<OpenedStore>,
  numRuns = runs(200),
): void {
  describe(`${name} as a run store`, () => {
    for (const { title, run } of runStoreConformance({ name, open, results: true })) test(title, run);

    test('finds and removes runs whose ids are numbers', async () => {
      const { store, close } = await open();
      const runs = store as CheckpointStore & { removeOlderThan(ageMs: number): unknown };
      const held = { runId: '7', claim: 'a' };
      await runs.begin({ ...held, leaseMs: 60_000 }, runCheckpoint('7'));
      await runs.release(held);
      expect(await runs.claimLost({ claim: 'b', leaseMs: 60_000 })).toMatchObject({ run: { runId: '7' } });
      await runs.end({ ...held, claim: 'b' }, []);
      expect(await runs.removeOlderThan(0)).toBe(1);
      await close?.();
    });

    test('has at most one valid claim of a run at any time, and a lost claim changes nothing', async () => {
      await fc.assert(
        fc.asyncProperty(randomSteps, async (steps) => {
          const opened = await open();
          try {
            const ledger = new ClaimLedger(opened);
            for (const step of steps) {
              const { expected, told } = await ledger.take(step);
              expect({ step, told }).toEqual({ step, told: expected });
              const states = await ledger.compareStates();
              expect(states.told).toEqual(states.expected);
            }
          } finally {
            await opened.close?.();
          }
        }),
        { numRuns },
      );
    });
  });
}
