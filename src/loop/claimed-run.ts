import { setTimeout as pause } from 'node:timers/promises';
import { CONVERSATION_LOG, type ConversationLog } from '../contract/conversation-log.js';
import { CHECKPOINT_STORE, type CheckpointStore, type RunCheckpoint } from '../contract/run-checkpoint.js';
import type { RunClaim, RunState, RunStore } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import type { OptionRule } from '../kernel/options.js';

export const DEFAULT_LEASE_MS = 30_000;

/** Milliseconds for which a run is claimed. */
export const LEASE: OptionRule = {
  accepts: (value) => Number.isFinite(value) && Number(value) >= 1,
  fix: 'a number, 1 or more',
  schema: { type: 'number', minimum: 1 },
};

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/** Whose a run is to be, and where it is kept. */
interface ClaimRequest<Store extends RunStore = RunStore> {
  readonly store: Store;
  readonly runId: string;
  readonly leaseMs: number;
}

/** One write about a claimed run; false where the claim no longer holds. */
interface ClaimedWrite<Store> {
  readonly write: (store: Store, claim: RunClaim) => boolean | Promise<boolean>;
  /** Whether a write was done that had seemed to fail, and now is refused. */
  readonly wasDone?: (store: Store) => Promise<boolean>;
}

/** A run whose holder this process is, as long as it renews its lease, which it does at every third of it. */
export class ClaimedRun<Store extends RunStore = RunStore> {
  readonly claim: RunClaim;
  readonly #request: ClaimRequest<Store>;
  readonly #lost = new AbortController();
  readonly #renewal: LeaseRenewal<boolean>;

  constructor(request: ClaimRequest<Store>, claim: string = crypto.randomUUID()) {
    const { store, runId, leaseMs } = request;
    this.#request = request;
    this.claim = { runId, claim };
    this.#renewal = new LeaseRenewal({
      leaseMs,
      renew: () => store.renew({ ...this.claim, leaseMs }),
      take: (holds) => {
        if (!holds) void this.#takenOver();
        return holds;
      },
      fail: (cause) => {
        const message = `The claim on run '${runId}' could not be renewed: ${errorMessage(cause)}`;
        this.#lost.abort(new ToolwrightError('RunStoreFailed', message, { cause }));
      },
    });
  }

  /** Aborted when the run is no longer this process's; the reason is the error that says why. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get leaseMs(): number {
    return this.#request.leaseMs;
  }

  /** The run was claimed at this time, by `performance.now()`. */
  hold(since: number): void {
    this.#renewal.begin(since);
  }

  /**
   * Writes, again and again where the store fails, for as long as the lease. Throws where that was in vain or somebody
   * else has the run; then it is lost.
   */
  async write({ write, wasDone }: ClaimedWrite<Store>): Promise<void> {
    const { store, leaseMs } = this.#request;
    const since = performance.now();
    let failed: unknown;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      this.lost.throwIfAborted();
      try {
        if (await write(store, this.claim)) return;
        if (failed !== undefined && (await wasDone?.(store))) return;
        throw await this.#takenOver();
      } catch (cause) {
        this.lost.throwIfAborted();
        failed = cause;
        if (performance.now() - since + wait >= leaseMs) throw this.#failed(cause);
      }
      await pause(wait, undefined, { signal: this.lost }).catch(() => {});
    }
  }

  /** Gives the run back with its new state; throws `RunClaimed` where it is somebody else's by now. */
  async release(state: RunState): Promise<void> {
    this.leave();
    if (!(await this.#request.store.release(this.claim, state))) throw await this.#takenOver();
  }

  /**
   * Gives the run back as it was, or with what it asks by now. A store that fails keeps it claimed until the lease ends,
   * no longer.
   */
  async giveBack(state?: RunState): Promise<void> {
    this.leave();
    try {
      await this.#request.store.release(this.claim, state);
    } catch {}
  }

  /** Forgets the run; throws `RunClaimed` where it is somebody else's by now. */
  async remove(): Promise<void> {
    this.leave();
    if (!(await this.#request.store.remove(this.claim))) throw await this.#takenOver();
  }

  /** Leaves the run as it stands to whoever takes it over when the lease has ended; nothing more is written. */
  abandon(reason: unknown): void {
    this.leave();
    this.#lost.abort(reason);
  }

  /** Renews the lease no more. */
  leave(): void {
    this.#renewal.end();
  }

  async #takenOver(): Promise<ToolwrightError> {
    const { store, runId } = this.#request;
    const error = (await endedByAnother(store, runId)) ?? claimedByAnother(runId);
    this.abandon(error);
    return error;
  }

  #failed(cause: unknown): ToolwrightError {
    const message = `The store could not keep run '${this.claim.runId}': ${errorMessage(cause)}`;
    const error = new ToolwrightError('RunStoreFailed', message, { cause });
    this.abandon(error);
    return error;
  }
}

/** Where somebody else has ended the run, as an operator does who cancels it. A store that fails does not say. */
async function endedByAnother(store: RunStore, runId: string): Promise<ToolwrightError | undefined> {
  if (!CHECKPOINT_STORE.accepts(store)) return undefined;
  const read = async () => (store as CheckpointStore).read(runId);
  const run = await read().catch(() => undefined);
  const end = run?.entries.findLast((entry) => entry.type === 'end');
  if (end === undefined) return undefined;
  const why = end.error === undefined ? '' : ` ${end.error.message}`;
  const message = `Run '${runId}' has ended (${end.status}): somebody else had taken it over.${why}`;
  return new ToolwrightError('RunClaimed', message);
}

/** Somebody else holds a run. */
export function claimedByAnother(runId: string): ToolwrightError {
  return new ToolwrightError('RunClaimed', `Run '${runId}' is claimed by somebody else.`);
}

/** A lease, and who hears of it. */
interface RenewedLease<Renewal> {
  readonly leaseMs: number;
  /** Asks the store for as much time again. */
  readonly renew: () => Renewal | Promise<Renewal>;
  /** Hears what the store said; false where the lease is somebody else's by now. */
  readonly take: (renewal: Renewal) => boolean;
  /** The store could not be asked for so long that the lease has ended: somebody else may have taken it. */
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

  /** The lease was asked for at this time, by `performance.now()`. */
  begin(since: number): void {
    this.#renewedAt = since;
    this.#schedule();
  }

  /** Renews it now; what the store says is taken only while the lease is not over. */
  async renew(): Promise<void> {
    const { leaseMs, renew, take, fail } = this.#lease;
    const now = performance.now();
    try {
      const renewal = await renew();
      if (this.#isOver || !take(renewal)) return;
      this.#renewedAt = now;
    } catch (cause) {
      if (this.#isOver) return;
      // The store may come back in time.
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

/** How long a conversation is waited for that somebody holds. */
const LOOK_FOR_MS = 3_000;

/**
 * Makes a conversation due whose turn was ended from outside: where the turn waited for answers, nothing else would.
 * Who holds it may have looked at the run a moment before; one that runs the turn finds its run taken. Nothing is to be
 * done where the conversation knows that the turn is over.
 */
export async function lookAgain(
  store: CheckpointStore,
  run: Pick<RunCheckpoint, 'runId' | 'turnOf'>,
): Promise<void> {
  const { runId, turnOf: conversationId } = run;
  const { conversations } = store as { readonly conversations?: unknown };
  if (conversationId === undefined || !CONVERSATION_LOG.accepts(conversations)) return;
  const log = conversations as ConversationLog;
  const hold = { conversationId, claim: crypto.randomUUID() };
  const until = performance.now() + LOOK_FOR_MS;
  for (;;) {
    if ((await log.read(conversationId))?.turn?.runId !== runId) return;
    const outcome = await log.hold({ ...hold, leaseMs: LOOK_FOR_MS });
    // Less than its revision: as if something had entered since.
    if (outcome.status === 'held') await log.letGo(hold, outcome.conversation.revision - 1);
    if (outcome.status !== 'taken' || performance.now() > until) return;
    await pause(FIRST_PAUSE_MS);
  }
}
