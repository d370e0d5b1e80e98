import { withMethods } from '../kernel/options.js';
import type { BudgetGrant, Spending } from './budget.js';
import type { JsonObject } from './json-schema.js';
import type { Message, Usage } from './llm-provider.js';
import type { RunClaim, RunLease, RunState, RunStore, StoredCall } from './run-state.js';

/**
 * A run under way as of its beginning, or of when it last went on: plain JSON. What it has done since stands in its
 * entries.
 */
export interface RunCheckpoint extends Omit<RunState, 'open' | 'pending' | 'signature'> {
  readonly status: 'running';
  /** The assistant message within which the run goes on; absent where the model is asked next. */
  readonly open?: RunState['open'];
}

/** How a run that is over ended. */
export interface StoredEnd {
  readonly status: 'completed' | 'limit' | 'aborted' | 'failed' | 'budget';
  readonly content: string;
  /** Why it did not complete. */
  readonly error?: { readonly code?: number; readonly name: string; readonly message: string };
  readonly iterations: number;
  readonly usage: Usage;
  /** What it has spent; only where it had a budget. */
  readonly spent?: Spending;
}

/** What a run under way adds to its checkpoint. The order counts. */
export type RunEntry =
  /** An assistant message was taken, and its calls begin: what was open before has been answered. */
  | {
      readonly type: 'step';
      /** What the history got since the entry before that has messages, up to this assistant message. */
      readonly messages: readonly Message[];
      readonly iterations: number;
      readonly usage: Usage;
      /** What the run has spent by then, and was granted; only where it has a budget. */
      readonly spent?: Spending;
      readonly granted?: readonly BudgetGrant[];
      /** Its calls are begun, or held. */
      readonly open: RunState['open'];
    }
  /** Calls of the open message, by their place in it: settled, waiting, or begun after they were held. */
  | {
      readonly type: 'calls';
      readonly calls: readonly { readonly index: number; readonly call: StoredCall }[];
    }
  /** A value of `context.once` of the call at this place, made for these arguments. */
  | {
      readonly type: 'once';
      readonly index: number;
      readonly arguments: JsonObject;
      readonly key: string;
      readonly value?: unknown;
    }
  /** The effect of this key was compensated, or could not be. */
  | {
      readonly type: 'compensated';
      readonly idempotencyKey: string;
      readonly isError: boolean;
      readonly text: string;
    }
  /** The run is over. */
  | ({ readonly type: 'end'; readonly messages: readonly Message[] } & StoredEnd);

/** What becomes of a run in a store. A run whose holder died is `running`, and its lease has ended. */
export type RunStatus = 'running' | 'suspended' | 'ended';

/** A stored run without its contents. Times are milliseconds since 1970, by the store's clock. */
export interface RunSummary {
  readonly runId: string;
  readonly status: RunStatus;
  /** How often the run has been claimed. */
  readonly generation: number;
  /** When the lease of the run ends or ended; absent if it was not claimed since it was released. */
  readonly leaseEnd?: number;
  readonly createdAt: number;
  /** When it began to run, was suspended or ended; what it does while it runs does not count. */
  readonly changedAt: number;
}

/** A stored run: its state, and its entries since. A `suspended` run has a `RunState`. */
export interface KeptRun extends RunSummary {
  readonly state: RunState | RunCheckpoint;
  readonly entries: readonly RunEntry[];
}

/** A run that was claimed as it stands; `taken`: another process holds it. */
export type TakenRun =
  | { readonly status: 'claimed'; readonly run: KeptRun }
  | { readonly status: 'taken' }
  | { readonly status: 'missing' };

/** Which runs may be claimed: only those without a holder, or also those of another holder. */
export interface SeizeLease extends RunLease {
  readonly from: 'nobody' | 'anybody';
}

/** Which runs are listed. */
export interface RunQuery {
  /** Default: all. */
  readonly status?: RunStatus;
  /** The `next` of the page before; default: from the start. */
  readonly after?: string;
  /** Runs at most, 1 to 1,000; default 100. */
  readonly limit?: number;
}

/** One page of a list. */
export interface RunPage {
  readonly runs: readonly RunSummary[];
  /** Names the next page; absent where this is the last. */
  readonly next?: string;
}

/** Suspended runs whose deadline for an answer has passed: turns of conversations, or all others. */
export interface ExpiredQuery {
  readonly of: 'turns' | 'others';
  /** Runs at most. */
  readonly limit: number;
}

/** A suspended run of which an answer comes too late, and the conversation whose turn it is. */
export interface ExpiredRun {
  readonly runId: string;
  readonly conversationId?: string;
}

/**
 * A store that keeps runs under way, too, and runs that have ended. A claim is the fence: whoever claims a run
 * replaces the claim before, and from then on every write of that one is refused. All times are the store's.
 */
export interface CheckpointStore extends RunStore {
  /** Stores a new run, claimed. Throws `RunClaimed` (517) if there is a run with this id. */
  begin(lease: RunLease, checkpoint: RunCheckpoint): void | Promise<void>;
  /**
   * Adds entries to a claimed run, all or none; false where the claim no longer holds, and then nothing changes. A store
   * that may fail after it has written takes the same array, given again, for the same write.
   */
  append(claim: RunClaim, entries: readonly RunEntry[]): boolean | Promise<boolean>;
  /** A claimed run goes on from here: the checkpoint takes the place of its state and entries. */
  checkpoint(claim: RunClaim, checkpoint: RunCheckpoint): boolean | Promise<boolean>;
  /** A claimed run has ended: adds the entries, ends the claim and stores the run. */
  end(claim: RunClaim, entries: readonly RunEntry[]): boolean | Promise<boolean>;
  /**
   * Claims the running run that nobody holds and whose lease ended longest ago. Of several who claim at the same
   * moment, no two get the same one. A store that keeps conversations gives out none of their open turns: whoever takes
   * turns goes on with those.
   */
  claimLost(lease: Omit<RunLease, 'runId'>): TakenRun | Promise<TakenRun>;
  /** Claims a run, whatever its status. */
  seize(lease: SeizeLease): TakenRun | Promise<TakenRun>;
  /** A run as it stands, claimed or not; `undefined` where there is none. */
  read(runId: string): KeptRun | undefined | Promise<KeptRun | undefined>;
  /** Runs in pages, the latest change first; of the same moment, by their ids. */
  list(query?: RunQuery): RunPage | Promise<RunPage>;
  /**
   * Suspended runs that nobody holds and of which one of the `pending` has an `expiresAt` that has come, the earliest
   * first. Where a store has no such method, nobody looks for them.
   */
  expiredRuns?(query: ExpiredQuery): readonly ExpiredRun[] | Promise<readonly ExpiredRun[]>;
  /**
   * Forgets the suspended and ended runs that nobody holds and that changed longest ago. Gives their number.
   *
   * @deprecated Removes runs that wait for an answer, too: `retention({ runs: ageMs })` of the stores does not.
   */
  removeOlderThan(ageMs: number): number | Promise<number>;
}

/** The store where a run saves its steps. */
export const CHECKPOINT_STORE = withMethods(
  [
    ...['save', 'load', 'claim', 'renew', 'release', 'remove'],
    ...['begin', 'append', 'checkpoint', 'end', 'claimLost', 'seize', 'read', 'list', 'removeOlderThan'],
  ],
  "a store that keeps runs under way: new SqliteRunStore({ path: 'runs.sqlite' })",
);
