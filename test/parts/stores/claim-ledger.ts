import fc from 'fast-check';
import type { RunState, RunStore } from 'toolwright';
import type { OpenedStore } from 'toolwright/testing';
import { runState } from './run-state.js';

/** Much longer than a case takes, so that a store may use a real clock. */
const MINUTE = 60_000;

/** A step on a store; `who` is the index of a claimer, also of one that has lost its claim. */
export type RandomStep =
  | { readonly kind: 'wait'; readonly minutes: number }
  | { readonly kind: 'save'; readonly runId: string }
  | { readonly kind: 'claim'; readonly runId: string; readonly leaseMinutes: number }
  | { readonly kind: 'renew'; readonly who: number; readonly leaseMinutes: number }
  | { readonly kind: 'release' | 'release with a state' | 'remove'; readonly who: number };

interface LedgerRun {
  state: RunState;
  holder?: { readonly claim: string; leaseEnd: number };
}

interface Claimer {
  readonly runId: string;
  readonly claim: string;
}

const runIds = fc.constantFrom('r', 's');
const leases = fc.integer({ min: 1, max: 20 });
const who = fc.nat(12);

/** Steps of several claimers of two runs in random order, with time passing in between. */
export const randomSteps: fc.Arbitrary<readonly RandomStep[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('wait' as const), minutes: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ kind: fc.constant('save' as const), runId: runIds }),
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('claim' as const), runId: runIds, leaseMinutes: leases }),
    },
    fc.record({ kind: fc.constant('renew' as const), who, leaseMinutes: leases }),
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom('release' as const, 'release with a state' as const, 'remove' as const),
        who,
      }),
    },
  ),
  { minLength: 1, maxLength: 40 },
);

/**
 * A reference implementation of claims. It takes every step and returns the expected result, so that at most
 * one claim of a run has an effect, and a lost claim never does.
 */
export class ClaimLedger {
  readonly #store: RunStore;
  readonly #advance: (ms: number) => void | Promise<void>;
  #now = 0;
  readonly #runs = new Map<string, LedgerRun>();
  readonly #claimers: Claimer[] = [{ runId: 'r', claim: 'never given' }];

  constructor({ store, advance }: OpenedStore) {
    this.#store = store;
    this.#advance = advance;
  }

  /** The expected and the actual result of a step. */
  async take(step: RandomStep): Promise<{ readonly expected: unknown; readonly told: unknown }> {
    switch (step.kind) {
      case 'wait':
        this.#now += step.minutes;
        await this.#advance(step.minutes * MINUTE);
        return { expected: undefined, told: undefined };
      case 'save':
        return this.#save(step.runId);
      case 'claim':
        return this.#claim(step);
      default:
        return this.#act(step);
    }
  }

  /** The expected and the actual states in the store. */
  async compareStates(): Promise<{ readonly expected: unknown; readonly told: unknown }> {
    return {
      expected: ['r', 's'].map((runId) => this.#runs.get(runId)?.state),
      told: await Promise.all(['r', 's'].map((runId) => this.#store.load(runId))),
    };
  }

  async #save(runId: string) {
    const run = this.#runs.get(runId);
    const state = runState(runId, (run?.state.revision ?? 0) + 1);
    const expected = run === undefined || !this.#isHeld(run);
    if (expected) this.#runs.set(runId, { state });
    const told = await (async () => this.#store.save(state))().then(
      () => true,
      () => false,
    );
    return { expected, told };
  }

  async #claim({ runId, leaseMinutes }: { readonly runId: string; readonly leaseMinutes: number }) {
    const claim = `claim ${this.#claimers.length}`;
    this.#claimers.push({ runId, claim });
    const run = this.#runs.get(runId);
    const told = await this.#store.claim({ runId, claim, leaseMs: leaseMinutes * MINUTE });
    if (run === undefined) return { expected: { status: 'missing' }, told };
    if (this.#isHeld(run)) return { expected: { status: 'taken' }, told };
    run.holder = { claim, leaseEnd: this.#now + leaseMinutes };
    return { expected: { status: 'claimed', state: run.state }, told };
  }

  async #act(step: Extract<RandomStep, { readonly who: number }>) {
    const claimer = this.#claimers[step.who % this.#claimers.length]!;
    const { runId, claim } = claimer;
    const run = this.#runs.get(runId);
    const isHolder = run?.holder?.claim === claim;
    const next = runState(runId, (run?.state.revision ?? 0) + 1);
    if (step.kind === 'renew') {
      if (isHolder && run.holder) run.holder.leaseEnd = this.#now + step.leaseMinutes;
      const leaseMs = step.leaseMinutes * MINUTE;
      return { expected: isHolder, told: await this.#store.renew({ ...claimer, leaseMs }) };
    }
    if (isHolder) {
      if (step.kind === 'remove') this.#runs.delete(runId);
      else this.#runs.set(runId, { state: step.kind === 'release' ? run.state : next });
    }
    if (step.kind === 'remove') return { expected: isHolder, told: await this.#store.remove(claimer) };
    const state = step.kind === 'release' ? undefined : next;
    return { expected: isHolder, told: await this.#store.release(claimer, state) };
  }

  #isHeld({ holder }: LedgerRun): boolean {
    return holder !== undefined && holder.leaseEnd > this.#now;
  }
}
