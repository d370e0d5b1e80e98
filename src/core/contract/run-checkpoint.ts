import { withMethods } from '../kernel/options.js';
import type { BudgetGrant, Spending } from './budget.js';
import type { JsonObject } from './json-schema.js';
import type { Message, Usage } from './llm-provider.js';
import type { RunClaim, RunLease, RunState, RunStore, StoredCall } from './run-state.js';

/** A running run at its start or its last resume: plain JSON. Its later steps are in its entries. */
export interface RunCheckpoint extends Omit<RunState, 'open' | 'pending' | 'signature'> {
  readonly status: 'running';
  /** The assistant message whose calls are open; absent if a request to the model comes next. */
  readonly open?: RunState['open'];
}

/** How a run ended. */
export interface StoredEnd {
  readonly status: 'completed' | 'limit' | 'aborted' | 'failed' | 'budget';
  readonly content: string;
  /** Why the run did not complete. */
  readonly error?: { readonly code?: number; readonly name: string; readonly message: string };
  readonly iterations: number;
  readonly usage: Usage;
  /** The amounts spent; only if the run had a budget. */
  readonly spent?: Spending;
}

/** An addition to the checkpoint of a running run. The order of entries matters. */
export type RunEntry =
  /** An assistant message was accepted, and its calls start: earlier calls are all answered. */
  | {
      readonly type: 'step';
      /** The messages since the previous entry with messages, up to this assistant message. */
      readonly messages: readonly Message[];
      readonly iterations: number;
      readonly usage: Usage;
      /** The amounts spent so far and granted; only if the run has a budget. */
      readonly spent?: Spending;
      readonly granted?: readonly BudgetGrant[];
      /** Its calls have begun, or are held. */
      readonly open: RunState['open'];
    }
  /** Calls of the open message, by index: settled, waiting, or begun after they were held. */
  | {
      readonly type: 'calls';
      readonly calls: readonly { readonly index: number; readonly call: StoredCall }[];
    }
  /** A value of `context.once` of the call at this index, for these arguments. */
  | {
      readonly type: 'once';
      readonly index: number;
      readonly arguments: JsonObject;
      readonly key: string;
      readonly value?: unknown;
    }
  /** The effect with this key was compensated, or its compensation failed. */
  | {
      readonly type: 'compensated';
      readonly idempotencyKey: string;
      readonly isError: boolean;
      readonly text: string;
    }
  /** The run has ended. */
  | ({ readonly type: 'end'; readonly messages: readonly Message[] } & StoredEnd);

/** The status of a run in a store. If the holder of a run crashed, the run is `running` and its lease has expired. */
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
  /** When it last started, was suspended or ended; its steps do not count. */
  readonly changedAt: number;
}

/** A stored run with its state and its later entries. A `suspended` run has a `RunState`. */
export interface KeptRun extends RunSummary {
  readonly state: RunState | RunCheckpoint;
  readonly entries: readonly RunEntry[];
}

/** The outcome of claiming a run; `taken`: another process holds it. */
export type TakenRun =
  | { readonly status: 'claimed'; readonly run: KeptRun }
  | { readonly status: 'taken' }
  | { readonly status: 'missing' };

/** Which runs may be claimed: only runs without a holder, or also runs of another holder. */
export interface SeizeLease extends RunLease {
  readonly from: 'nobody' | 'anybody';
}

/** Selects runs. */
export interface RunQuery {
  /** Default: all. */
  readonly status?: RunStatus;
  /** The `next` of the previous page; default: from the start. */
  readonly after?: string;
  /** The most runs, from 1 to 1,000; default: 100. */
  readonly limit?: number;
}

/** A page of runs. */
export interface RunPage {
  readonly runs: readonly RunSummary[];
  /** The start of the next page; absent on the last page. */
  readonly next?: string;
}

/** Selects suspended runs whose deadline for an answer has passed: turns of conversations, or all others. */
export interface ExpiredQuery {
  readonly of: 'turns' | 'others';
  /** The most runs. */
  readonly limit: number;
}

/** A suspended run whose deadline for an answer has passed, and the conversation if it is a turn. */
export interface ExpiredRun {
  readonly runId: string;
  readonly conversationId?: string;
}

/**
 * A store that also stores running and ended runs. The claim is a fence: claiming a run replaces the earlier claim,
 * and from then on all writes of the earlier holder are refused. All times use the store's clock.
 */
export interface CheckpointStore extends RunStore {
  /** Stores a new, claimed run. Throws `RunClaimed` (517) if there is already a run with this id. */
  begin(lease: RunLease, checkpoint: RunCheckpoint): void | Promise<void>;
  /**
   * Adds entries to a claimed run in one transaction; false, without a change, if the claim is no longer valid. If
   * the store throws, the caller repeats the call with the same array object: if the first call had already written
   * it, the second changes nothing and returns true.
   */
  append(claim: RunClaim, entries: readonly RunEntry[]): boolean | Promise<boolean>;
  /** Replaces the state and entries of a claimed run by the checkpoint; the run continues from it. */
  checkpoint(claim: RunClaim, checkpoint: RunCheckpoint): boolean | Promise<boolean>;
  /** Ends a claimed run: adds the entries, ends the claim and stores the run. */
  end(claim: RunClaim, entries: readonly RunEntry[]): boolean | Promise<boolean>;
  /**
   * Claims the running run without a holder whose lease expired first. Simultaneous callers never receive the same
   * run. If the store also stores conversations, it does not return their open turns: the process that takes turns
   * resumes those.
   */
  claimLost(lease: Omit<RunLease, 'runId'>): TakenRun | Promise<TakenRun>;
  /** Claims a run of any status. */
  seize(lease: SeizeLease): TakenRun | Promise<TakenRun>;
  /** A stored run, claimed or not; `undefined` if it does not exist. */
  read(runId: string): KeptRun | undefined | Promise<KeptRun | undefined>;
  /** Runs in pages, latest change first; runs with the same time are sorted by id. */
  list(query?: RunQuery): RunPage | Promise<RunPage>;
  /**
   * Suspended runs without a holder that have a `pending` entry whose `expiresAt` has passed, earliest first. If a
   * store has no such method, expired runs are not resumed automatically.
   */
  expiredRuns?(query: ExpiredQuery): readonly ExpiredRun[] | Promise<readonly ExpiredRun[]>;
  /**
   * Deletes suspended and ended runs without a holder that did not change for this long; returns their number.
   *
   * @deprecated Also deletes runs that wait for an answer; `retention({ runs: ageMs })` of the stores does not.
   */
  removeOlderThan(ageMs: number): number | Promise<number>;
}

/** The rule for stores that save the steps of runs. */
export const CHECKPOINT_STORE = withMethods(
  [
    ...['save', 'load', 'claim', 'renew', 'release', 'remove'],
    ...['begin', 'append', 'checkpoint', 'end', 'claimLost', 'seize', 'read', 'list', 'removeOlderThan'],
  ],
  "a store that supports checkpoints: new SqliteRunStore({ path: 'runs.sqlite' })",
);
