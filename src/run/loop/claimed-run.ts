import { setTimeout as pause } from 'node:timers/promises';
import { CONVERSATION_LOG, type ConversationLog } from '../../core/contract/conversation-log.js';
import type { Logger } from '../../core/contract/ports.js';
import {
  CHECKPOINT_STORE,
  type CheckpointStore,
  type KeptRun,
  type RunCheckpoint,
  type SeizeLease,
} from '../../core/contract/run-checkpoint.js';
import type { RunClaim, RunState, RunStore } from '../../core/contract/run-state.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { MAX_TIMER_MS } from '../../core/kernel/async.js';
import type { OptionRule } from '../../core/kernel/options.js';
import { logFailure } from '../call/failure-log.js';
import { noSuchRun, storeFailed } from './run-errors.js';

export const DEFAULT_LEASE_MS = 30_000;

/** Milliseconds for which a run is claimed. */
export const LEASE: OptionRule = {
  accepts: (value) => Number.isFinite(value) && Number(value) >= 1,
  fix: 'a number, 1 or more',
  schema: { type: 'number', minimum: 1 },
};

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export interface ClaimRequest<Store extends RunStore = RunStore> {
  readonly store: Store;
  readonly runId: string;
  readonly logger?: Logger | undefined;
  readonly leaseMs: number;
}

/** Writes to a claimed run; false if the claim is no longer valid. */
type ClaimedWrite = (claim: RunClaim) => boolean | Promise<boolean>;

/** Why this process no longer holds a run. */
const LOSSES = new WeakSet<object>();

/** Whether a call was aborted because this process no longer holds its run, which another process continues. */
export function isLeftToOthers({ reason }: AbortSignal): boolean {
  return LOSSES.has(reason);
}

/** A run that this process holds while it renews its lease, at every third of the lease. */
export class ClaimedRun {
  readonly claim: RunClaim;
  readonly leaseMs: number;
  readonly #store: RunStore;
  readonly #logger: Logger | undefined;
  readonly #createdAt = performance.now();
  readonly #lost = new AbortController();
  readonly #renewal: LeaseRenewal<boolean>;

  constructor({ store, runId, leaseMs, logger }: ClaimRequest, claim: string = crypto.randomUUID()) {
    this.#store = store;
    this.#logger = logger;
    this.leaseMs = leaseMs;
    this.claim = { runId, claim };
    this.#renewal = new LeaseRenewal({
      leaseMs,
      renew: () => store.renew({ ...this.claim, leaseMs }),
      take: (holds) => {
        if (!holds) void this.#takenOver();
        return holds;
      },
      fail: (cause) => this.abandon(storeFailed(`The claim on run '${runId}' could not be renewed`, cause)),
    });
  }

  /** Aborted with the error when this process no longer holds the run. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Renews the lease from now on. It was requested after this object was created, or at `since`. */
  hold(since = this.#createdAt): void {
    this.#renewal.begin(since);
  }

  /**
   * Writes, and retries if the store fails, for as long as the lease, unless the error is not `retryable`. If that
   * fails, or if another process has the run, it throws, and the run is lost. `wasDone`: whether a refused write had
   * been done although it seemed to fail.
   */
  async write(write: ClaimedWrite, wasDone?: () => Promise<boolean>): Promise<void> {
    const since = performance.now();
    let failed: unknown;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      this.lost.throwIfAborted();
      try {
        if (await write(this.claim)) return;
        if (failed !== undefined && (await wasDone?.())) return;
        throw await this.#takenOver();
      } catch (cause) {
        this.lost.throwIfAborted();
        const isFinal = Object(cause).retryable === false || performance.now() - since + wait >= this.leaseMs;
        if (failed === undefined && !isFinal) {
          const what = `Run '${this.claim.runId}' could not be saved; it is tried again for up to ${this.leaseMs} ms`;
          logFailure(this.#logger, { what, error: cause, at: { runId: this.claim.runId } });
        }
        failed = cause;
        if (isFinal) {
          const error = storeFailed(`The store could not save run '${this.claim.runId}'`, cause);
          this.abandon(error);
          throw error;
        }
      }
      await pause(wait, undefined, { signal: this.lost }).catch(() => {});
    }
  }

  /** Releases the run with its new state; throws `RunClaimed` if another process has it now. */
  async release(state: RunState): Promise<void> {
    this.leave();
    if (!(await this.#store.release(this.claim, state))) throw await this.#takenOver();
  }

  /**
   * Releases the run unchanged, or with this state. If the store fails, the run stays claimed until the lease
   * expires.
   */
  async giveBack(state?: RunState): Promise<void> {
    this.leave();
    try {
      await this.#store.release(this.claim, state);
    } catch {}
  }

  /** Removes the run; throws `RunClaimed` if another process has it now. */
  async remove(): Promise<void> {
    this.leave();
    if (!(await this.#store.remove(this.claim))) throw await this.#takenOver();
  }

  /** Leaves the run to the process that takes it over when the lease has expired; nothing more is written. */
  abandon(reason: unknown): void {
    this.leave();
    if (typeof reason === 'object' && reason !== null) LOSSES.add(reason);
    this.#lost.abort(reason);
  }

  leave(): void {
    this.#renewal.end();
  }

  /** The error if another process has the run, or has ended it, as an operator does who cancels it. */
  async #takenOver(): Promise<ToolwrightError> {
    const { runId } = this.claim;
    let error = claimedByAnother(runId);
    if (CHECKPOINT_STORE.accepts(this.#store)) {
      const store = this.#store as CheckpointStore;
      const run = await (async () => store.read(runId))().catch(() => undefined);
      const end = run?.entries.findLast((entry) => entry.type === 'end');
      if (end !== undefined) {
        const why = end.error === undefined ? '' : ` ${end.error.message}`;
        const message = `Run '${runId}' has ended (${end.status}) in another process.${why}`;
        error = new ToolwrightError('RunClaimed', message);
      }
    }
    this.abandon(error);
    return error;
  }
}

export function claimedByAnother(runId: string): ToolwrightError {
  return new ToolwrightError(
    'RunClaimed',
    `Run '${runId}' is being continued by another process. Try again later; if that process has crashed, after its lease (30 s by default).`,
  );
}

/** A run that this process has claimed, in its stored state. */
export interface SeizedRun {
  readonly claimed: ClaimedRun;
  readonly run: KeptRun;
}

/**
 * Claims a run of any status.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517).
 */
export async function seizeRun({
  from,
  ...request
}: ClaimRequest<CheckpointStore> & Pick<SeizeLease, 'from'>): Promise<SeizedRun> {
  const { store, runId, leaseMs } = request;
  const claimed = new ClaimedRun(request);
  const taken = await store.seize({ ...claimed.claim, leaseMs, from });
  if (taken.status === 'missing') throw noSuchRun(runId);
  if (taken.status === 'taken') throw claimedByAnother(runId);
  claimed.hold();
  return { claimed, run: taken.run };
}

interface RenewedLease<Renewal> {
  readonly leaseMs: number;
  /** Renews the lease in the store. */
  readonly renew: () => Renewal | Promise<Renewal>;
  /** Receives the store's answer; false if another process has the lease now. */
  readonly take: (renewal: Renewal) => boolean;
  /** The store was unavailable for so long that the lease has expired: another process may have taken it. */
  readonly fail: (cause: unknown) => void;
}

/** Renews a lease at every third of it, until it is over or lost. */
export class LeaseRenewal<Renewal> {
  readonly #lease: RenewedLease<Renewal>;
  #timer: NodeJS.Timeout | undefined;
  #renewedAt = 0;
  #isOver = false;

  constructor(lease: RenewedLease<Renewal>) {
    this.#lease = lease;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Starts with a lease that was requested at this time, by `performance.now()`. */
  begin(since: number): void {
    this.#renewedAt = since;
    this.#schedule();
  }

  /** Renews it now; the answer of the store is used only while the lease is not over. */
  async renew(): Promise<void> {
    const { leaseMs, renew, take, fail } = this.#lease;
    const now = performance.now();
    try {
      const renewal = await renew();
      if (this.#isOver || !take(renewal)) return;
      this.#renewedAt = now;
    } catch (cause) {
      if (this.#isOver) return;
      // The store may answer again in time.
      if (now - this.#renewedAt >= leaseMs) {
        fail(cause);
        return;
      }
    }
    this.#schedule();
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    const wait = Math.min(this.#lease.leaseMs / 3, MAX_TIMER_MS);
    this.#timer = setTimeout(() => void this.renew(), wait).unref();
  }
}

/** The conversations of a store, if it has any. */
export function conversationsIn(store: CheckpointStore): ConversationLog | undefined {
  const { conversations } = store as { readonly conversations?: unknown };
  return CONVERSATION_LOG.accepts(conversations) ? (conversations as ConversationLog) : undefined;
}

/** How long to wait for a conversation that another process holds. */
const LOOK_FOR_MS = 3_000;

/**
 * Makes a conversation due whose turn was ended from outside: if the turn waited for answers, no other event would.
 * Its holder may have inspected the run a moment before. Does nothing if the conversation's turn is over.
 */
export async function lookAgain(
  store: CheckpointStore,
  run: Pick<RunCheckpoint, 'runId' | 'turnOf'>,
): Promise<void> {
  const { runId, turnOf: conversationId } = run;
  const log = conversationsIn(store);
  if (conversationId === undefined || log === undefined) return;
  const hold = { conversationId, claim: crypto.randomUUID() };
  const until = performance.now() + LOOK_FOR_MS;
  for (;;) {
    if ((await log.read(conversationId))?.turn?.runId !== runId) return;
    const outcome = await log.hold({ ...hold, leaseMs: LOOK_FOR_MS });
    // Less than its revision, as if an entry had arrived since.
    if (outcome.status === 'held') await log.letGo(hold, outcome.conversation.revision - 1);
    if (outcome.status !== 'taken' || performance.now() > until) return;
    await pause(FIRST_PAUSE_MS);
  }
}
