import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type OpenedStore, runStoreConformance } from 'toolwright/testing';
import { runs } from '../../setup/runs.js';
import { ClaimLedger, randomSteps } from './claim-ledger.js';

/** The tests of every run store: the conformance suite, and claims in random order. */
export function describeRunStore(
  name: string,
  open: () => OpenedStore | Promise<OpenedStore>,
  numRuns = runs(200),
): void {
  describe(`${name} as a run store`, () => {
    for (const { title, run } of runStoreConformance({ name, open, results: true })) test(title, run);

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
