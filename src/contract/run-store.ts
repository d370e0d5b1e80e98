import { withMethods } from '../kernel/option-rules.js';
import type { RunState } from './run-state.js';

/** Whose a run is for now. */
export interface RunClaim {
  readonly runId: string;
  /** Made up by the claimer; nobody else knows it. */
  readonly claim: string;
}

/** A claim, and for how long it holds unless it is renewed. */
export interface RunLease extends RunClaim {
  /** Milliseconds from now. */
  readonly leaseMs: number;
}

/** What came of claiming a run; `taken`: somebody else has claimed it, and that claim still holds. */
export type ClaimOutcome =
  | { readonly status: 'claimed'; readonly state: RunState }
  | { readonly status: 'taken' }
  | { readonly status: 'missing' };

/**
 * Keeps suspended runs. Every method is atomic, also between processes; methods may be synchronous.
 *
 * A run in it is free, or claimed until the lease ends. A claim holds until its holder ends it or somebody
 * else takes the run after the lease has ended: whoever is late, but was not replaced, has lost nothing.
 */
export interface RunStore {
  /**
   * Keeps the state as a free run, in place of an older state of the same run. Throws, and changes nothing,
   * where that run is claimed, or where a state of a later revision is kept.
   */
  save(state: RunState): void | Promise<void>;
  /** The state of a run, claimed or free; `undefined` where there is none. */
  load(runId: string): RunState | undefined | Promise<RunState | undefined>;
  /** Claims a run that is free or whose lease has ended. */
  claim(lease: RunLease): ClaimOutcome | Promise<ClaimOutcome>;
  /** Lengthens a claim; false where it no longer holds. */
  renew(lease: RunLease): boolean | Promise<boolean>;
  /**
   * Ends a claim, and keeps the new state in place of the claimed one where one is given; false where the
   * claim no longer holds, and then nothing changes.
   */
  release(claim: RunClaim, state?: RunState): boolean | Promise<boolean>;
  /** Forgets a run that has ended; false where the claim no longer holds, and then nothing changes. */
  remove(claim: RunClaim): boolean | Promise<boolean>;
}

/** What the option `store` may be. */
export const RUN_STORE = withMethods(
  ['save', 'load', 'claim', 'renew', 'release', 'remove'],
  "new SqliteRunStore({ path: 'runs.sqlite' })",
);
