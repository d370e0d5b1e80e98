import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { RunClaim, RunState, RunStore } from 'toolwright';
import { runs } from '../../setup/runs.js';
import { ClaimLedger, randomSteps } from './claim-ledger.js';
import { runState } from './run-state.js';

/** A store under test, empty, that tells the time by the given clock. */
export interface OpenedStore {
  readonly store: RunStore;
  close(): void;
}

/** A store with `now` as its clock. */
export type OpenStore = (now: () => number) => OpenedStore;

const LEASE = 1000;

/** What every {@link RunStore} must do, whatever keeps its runs. */
export function describeRunStore(name: string, open: OpenStore): void {
  describe(`${name} as a run store`, () => {
    let time = 0;
    let opened: OpenedStore;
    let store: RunStore;

    beforeEach(() => {
      time = 1_700_000_000_000;
      opened = open(() => time);
      store = opened.store;
    });

    afterEach(() => opened.close());

    const claim = (who: string, leaseMs = LEASE, runId = 'r') => store.claim({ runId, claim: who, leaseMs });
    const asHeld = (who: string, runId = 'r'): RunClaim => ({ runId, claim: who });
    const revisionKept = async () => (await store.load('r'))?.revision;

    test('knows no run that was never kept', async () => {
      expect(await store.load('r')).toBeUndefined();
      expect(await claim('a')).toEqual({ status: 'missing' });
      expect(await store.renew({ ...asHeld('a'), leaseMs: LEASE })).toBe(false);
      expect(await store.release(asHeld('a'))).toBe(false);
      expect(await store.release(asHeld('a'), runState('r', 1))).toBe(false);
      expect(await store.remove(asHeld('a'))).toBe(false);
      expect(await store.load('r')).toBeUndefined();
    });

    test('gives a state back as it was, whatever is in its texts', async () => {
      const texts = ['', '\u0000', '"\'\\', '\u2028', '👩‍🚀', '\ud800', "'); DROP TABLE toolwright_runs; --"];
      const state = runState('r', 1, texts);
      await store.save(state);
      expect(await store.load('r')).toEqual(state);
      expect(await claim('a')).toEqual({ status: 'claimed', state });
    });

    test('keeps what was given and not what became of it, and gives out copies', async () => {
      const state = runState('r', 1, ['as given']);
      await store.save(state);
      (state.messages as unknown[]).push('changed');
      const first = (await store.load('r'))!;
      (first.messages as unknown[]).push('changed');
      expect((await store.load('r'))?.messages).toEqual([{ role: 'user', content: 'as given' }]);
    });

    test('keeps runs of odd names apart', async () => {
      const names = ['', ' ', 'r', 'R', 'r ', '__proto__', 'constructor', '1', '01', "a'b", 'é', 'e\u0301'];
      for (const name of names) await store.save(runState(name, 1, [name]));
      for (const name of names) {
        expect((await store.load(name))?.messages).toEqual([{ role: 'user', content: name }]);
        expect((await claim('a', LEASE, name)).status).toBe('claimed');
      }
    });

    test('gives a run to the first who claims it, and to nobody else before the lease has ended', async () => {
      await store.save(runState('r', 1));
      expect((await claim('a')).status).toBe('claimed');
      expect(await claim('b')).toEqual({ status: 'taken' });
      expect(await claim('a')).toEqual({ status: 'taken' });
      time += LEASE - 1;
      expect(await claim('b')).toEqual({ status: 'taken' });
      time += 1;
      expect(await claim('b')).toEqual({ status: 'claimed', state: runState('r', 1) });
    });

    test('gives a run to one of many who claim it at once', async () => {
      await store.save(runState('r', 1));
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, index) => claim(`c${index}`)));
      expect(outcomes.filter(({ status }) => status === 'claimed')).toHaveLength(1);
      expect(outcomes.filter(({ status }) => status === 'taken')).toHaveLength(19);
    });

    test('shows a claimed run as it was before', async () => {
      await store.save(runState('r', 1));
      await claim('a');
      expect(await store.load('r')).toEqual(runState('r', 1));
    });

    test('counts a renewed lease from its renewal', async () => {
      await store.save(runState('r', 1));
      await claim('a');
      time += LEASE - 1;
      expect(await store.renew({ ...asHeld('a'), leaseMs: 3 * LEASE })).toBe(true);
      time += 3 * LEASE - 1;
      expect(await claim('b')).toEqual({ status: 'taken' });
      time += 1;
      expect((await claim('b')).status).toBe('claimed');
    });

    test('frees a released run at once, as it was or with its new state', async () => {
      await store.save(runState('r', 1));
      await claim('a');
      expect(await store.release(asHeld('a'))).toBe(true);
      expect(await claim('b')).toEqual({ status: 'claimed', state: runState('r', 1) });
      expect(await store.release(asHeld('b'), runState('r', 2))).toBe(true);
      expect(await claim('c')).toEqual({ status: 'claimed', state: runState('r', 2) });
    });

    test('forgets a removed run, and no other', async () => {
      await store.save(runState('r', 1));
      await store.save(runState('s', 1));
      await claim('a');
      expect(await store.remove(asHeld('a', 's'))).toBe(false);
      expect(await store.remove(asHeld('a'))).toBe(true);
      expect(await store.load('r')).toBeUndefined();
      expect(await claim('b')).toEqual({ status: 'missing' });
      expect(await store.load('s')).toEqual(runState('s', 1));
    });

    test('lets a claim do nothing once it has ended', async () => {
      await store.save(runState('r', 1));
      await claim('a');
      await store.release(asHeld('a'));
      expect(await attempts(store, asHeld('a'))).toEqual([false, false, false, false]);
      expect(await revisionKept()).toBe(1);
      expect((await claim('b')).status).toBe('claimed');
    });

    test('lets a claim do nothing once somebody else has the run, and leaves that one alone', async () => {
      await store.save(runState('r', 1));
      await claim('a');
      time += LEASE;
      await claim('b');
      expect(await attempts(store, asHeld('a'))).toEqual([false, false, false, false]);
      expect(await claim('c')).toEqual({ status: 'taken' });
      expect(await store.release(asHeld('b'), runState('r', 2))).toBe(true);
      expect(await revisionKept()).toBe(2);
    });

    test('lets one who is late, but whom nobody has replaced, go on', async () => {
      await store.save(runState('r', 1));
      await claim('a');
      time += 10 * LEASE;
      expect(await store.renew({ ...asHeld('a'), leaseMs: LEASE })).toBe(true);
      expect(await claim('b')).toEqual({ status: 'taken' });
      time += 10 * LEASE;
      expect(await store.release(asHeld('a'), runState('r', 2))).toBe(true);
      expect(await revisionKept()).toBe(2);
    });

    test('takes a later state of a free run, and the same again', async () => {
      await store.save(runState('r', 1));
      await store.save(runState('r', 2, ['one']));
      await store.save(runState('r', 2, ['other']));
      expect(await store.load('r')).toEqual(runState('r', 2, ['other']));
      expect((await claim('a')).status).toBe('claimed');
    });

    test('takes no earlier state than it has', async () => {
      await store.save(runState('r', 2));
      await expect(save(store, runState('r', 1))).rejects.toMatchObject({ name: 'RunClaimed' });
      expect(await revisionKept()).toBe(2);
    });

    test('takes no state of a claimed run, as long as the lease lasts', async () => {
      await store.save(runState('r', 1));
      await claim('a');
      await expect(save(store, runState('r', 2))).rejects.toMatchObject({ name: 'RunClaimed' });
      expect(await claim('b')).toEqual({ status: 'taken' });
      expect(await revisionKept()).toBe(1);
      time += LEASE;
      await store.save(runState('r', 2));
      expect(await attempts(store, asHeld('a'))).toEqual([false, false, false, false]);
      expect(await claim('b')).toEqual({ status: 'claimed', state: runState('r', 2) });
    });

    test('is left as it was by a state that is no JSON', async () => {
      await store.save(runState('r', 1));
      const broken = { ...runState('r', 2), iterations: 1n as unknown as number };
      await expect(save(store, broken)).rejects.toThrow(TypeError);
      await claim('a');
      await expect((async () => store.release(asHeld('a'), broken))()).rejects.toThrow(TypeError);
      expect(await claim('b')).toEqual({ status: 'taken' });
      expect(await store.release(asHeld('a'))).toBe(true);
      expect(await revisionKept()).toBe(1);
    });

    test('lets at most one claim hold at any time, and a lost one change nothing, whoever does what and when', async () => {
      await fc.assert(
        fc.asyncProperty(randomSteps, async (steps) => {
          const clock = { now: 1_700_000_000_000 };
          const { store: random, close } = open(() => clock.now);
          try {
            const ledger = new ClaimLedger(random, clock);
            for (const step of steps) {
              const { expected, told } = await ledger.take(step);
              expect({ step, told }).toEqual({ step, told: expected });
              const states = await ledger.compareStates();
              expect(states.told).toEqual(states.expected);
            }
          } finally {
            close();
          }
        }),
        { numRuns: runs(200) },
      );
    });
  });
}

/** What a claim that may be lost is told by every method. */
async function attempts(store: RunStore, claim: RunClaim): Promise<readonly boolean[]> {
  return [
    await store.renew({ ...claim, leaseMs: LEASE }),
    await store.release(claim),
    await store.release(claim, runState(claim.runId, 9)),
    await store.remove(claim),
  ];
}

/** A store may throw at once or reject later. */
async function save(store: RunStore, state: RunState): Promise<void> {
  await store.save(state);
}
