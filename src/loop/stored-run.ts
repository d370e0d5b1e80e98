import type { Answer, CallScope } from '../contract/call.js';
import { RUN_STORE, type RunClaim, type RunState, type RunStore } from '../contract/run-state.js';
import { invalidOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { FILLED_TEXT, optionTable, required } from '../kernel/options.js';
import { driveLoop } from './drive.js';
import type { ToolLoopResult } from './events.js';
import type { RunSurroundings } from './loop-run.js';
import { type ResumeConfig, type ResumeOptions, readResume } from './options.js';
import { type Resumption, resumeWith } from './resume.js';

const DEFAULT_LEASE_MS = 30_000;

/** A suspended run that a store keeps. */
export interface StoredRun {
  readonly store: RunStore;
  /** The `runId` of its state. */
  readonly runId: string;
  /**
   * Milliseconds until the run can be claimed again where this process dies; default 30,000. The claim is
   * renewed while the run goes on. Give more where tools compute for longer without awaiting anything.
   */
  readonly leaseMs?: number;
}

export const STORED_RUN = optionTable<StoredRun>('the stored run', {
  store: required(RUN_STORE),
  runId: required(FILLED_TEXT),
  leaseMs: { accepts: (value) => Number.isFinite(value) && Number(value) >= 1, fix: 'a number, 1 or more' },
});

/**
 * Goes on with a suspended run out of a store, as `resumeToolLoop` does. The run is claimed first: of
 * processes that resume it at the same moment one goes on, and the others get `RunClaimed`; their answers were
 * not taken. Afterwards a run that is suspended again is free with its new state, and one that has ended, in
 * whatever way, is gone from the store. `config.store` is not used.
 *
 * Where the process dies in between, the claim runs out, and the run can be resumed again from the state
 * before: calls that had been answered by then run again. A run that another process has taken over meanwhile
 * is aborted here.
 *
 * Where the store fails in the end, the result has the error `RunStoreFailed` (518): with status `failed` and
 * the `state` for a run that is suspended again, otherwise with the status that the run ended with.
 *
 * @throws ToolwrightError `RunNotFound` (516) and `RunClaimed` (517); `InvalidAnswer` (514) and `InvalidState`
 *   (515), `RunNotAllowed` (523), and the run is free again, as it was. What the store throws while it is claimed is thrown as it is.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * // Later, in any process; the answers name what `run.pending` lists:
 * const resumed = await resumeStoredRun({ provider, tools }, { store, runId }, answers, { data: { userId } });
 * ```
 */
export async function resumeStoredRun(
  config: ResumeConfig,
  run: StoredRun,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): Promise<ToolLoopResult> {
  const read = readResume({ config, options, others: invalidOptions(run, STORED_RUN) });
  const { scope = {} } = read;
  return driveStoredRun(config, run, { resumption: { ...read, answers }, surroundings: { scope } });
}

/** How a stored run goes on, and who watches it. */
interface StoredResumption {
  readonly resumption: Resumption;
  readonly surroundings: Omit<RunSurroundings, 'keep'>;
}

/** The same as {@link resumeStoredRun}, watched. */
export async function driveStoredRun(
  config: ResumeConfig,
  { store, runId, leaseMs = DEFAULT_LEASE_MS }: StoredRun,
  resumption: StoredResumption,
): Promise<ToolLoopResult> {
  const claimed = await claimRun({ store, runId, leaseMs });
  const result = await drive(config, claimed, resumption);
  claimed.lost.throwIfAborted();
  if (result.state !== undefined) return result;
  const ended = await forget(claimed, result);
  if (config.onLimit === 'throw' && ended.status === 'limit') throw ended.error;
  return ended;
}

async function drive(
  config: ResumeConfig,
  claimed: ClaimedRun,
  { resumption, surroundings }: StoredResumption,
): Promise<ToolLoopResult> {
  const signal = config?.signal ? AbortSignal.any([config.signal, claimed.lost]) : claimed.lost;
  // A throw at the limit would come after the calls have run; then the run must be forgotten first.
  const onLimit = config?.onLimit === 'throw' ? 'return' : config?.onLimit;
  try {
    const start = resumeWith(config, claimed.state, { ...resumption, isCertain: true });
    return await driveLoop({ ...config, signal, onLimit }, start, {
      ...surroundings,
      keep: { save: (state) => claimed.release(state) },
    });
  } catch (error) {
    // The answers, the owner, the state or the config are wrong: nothing has run.
    await claimed.giveBack();
    throw error;
  }
}

async function forget(claimed: ClaimedRun, result: ToolLoopResult): Promise<ToolLoopResult> {
  try {
    await claimed.remove();
    return result;
  } catch (cause) {
    claimed.lost.throwIfAborted();
    const message = `The run has ended (${result.status}), but the store could not forget it: ${errorMessage(cause)}`;
    return { ...result, error: new ToolwrightError('RunStoreFailed', message, { cause }) };
  }
}

/** What is to be claimed, and where. */
interface ClaimRequest {
  readonly store: RunStore;
  readonly runId: string;
  readonly leaseMs: number;
}

/**
 * Claims a run.
 *
 * @throws ToolwrightError `RunNotFound` (516) and `RunClaimed` (517).
 */
async function claimRun(request: ClaimRequest): Promise<ClaimedRun> {
  const { store, runId, leaseMs } = request;
  const claim = { runId, claim: crypto.randomUUID() };
  const claimedAt = performance.now();
  const outcome = await store.claim({ ...claim, leaseMs });
  if (outcome.status === 'missing')
    throw new ToolwrightError('RunNotFound', `The store has no suspended run '${runId}'.`);
  if (outcome.status === 'lost')
    throw new ToolwrightError(
      'RunNotSuspended',
      `Run '${runId}' is not suspended: the process that was at it has died. No answer was taken; recoverRuns goes on with it.`,
    );
  if (outcome.status === 'taken') throw claimedByAnother(runId);
  return new ClaimedRun(request, { claim, claimedAt, state: outcome.state });
}

/** A run that is this process's, as long as it renews its lease, which it does at every third of it. */
class ClaimedRun {
  readonly state: RunState;
  readonly #request: ClaimRequest;
  readonly #claim: RunClaim;
  readonly #lost = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #renewedAt: number;
  #isOver = false;

  constructor(
    request: ClaimRequest,
    { claim, claimedAt, state }: { claim: RunClaim; claimedAt: number; state: RunState },
  ) {
    this.#request = request;
    this.#claim = claim;
    this.#renewedAt = claimedAt;
    this.state = state;
    this.#schedule();
  }

  /** Aborted when the run is no longer this process's; the reason is the error that says why. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Gives the run back with its new state; throws `RunClaimed` where it is somebody else's by now. */
  async release(state: RunState): Promise<void> {
    this.#end();
    if (!(await this.#request.store.release(this.#claim, state))) throw this.#takenOver();
  }

  /** Gives the run back as it was. A store that fails keeps it claimed until the lease ends, no longer. */
  async giveBack(): Promise<void> {
    this.#end();
    try {
      await this.#request.store.release(this.#claim);
    } catch {}
  }

  /** Forgets the run; throws `RunClaimed` where it is somebody else's by now. */
  async remove(): Promise<void> {
    this.#end();
    if (!(await this.#request.store.remove(this.#claim))) throw this.#takenOver();
  }

  #schedule(): void {
    const pause = Math.min(this.#request.leaseMs / 3, MAX_TIMER_MS);
    this.#timer = setTimeout(() => void this.#renew(), pause).unref();
  }

  async #renew(): Promise<void> {
    const { store, leaseMs } = this.#request;
    const now = performance.now();
    try {
      const holds = await store.renew({ ...this.#claim, leaseMs });
      if (this.#isOver) return;
      if (!holds) {
        this.#takenOver();
        return;
      }
      this.#renewedAt = now;
    } catch (cause) {
      if (this.#isOver) return;
      // The store may come back in time; once the lease has ended, another process may have claimed the run.
      if (now - this.#renewedAt >= leaseMs) {
        const message = `The claim on run '${this.#claim.runId}' could not be renewed: ${errorMessage(cause)}`;
        this.#lost.abort(new ToolwrightError('RunStoreFailed', message, { cause }));
        return;
      }
    }
    this.#schedule();
  }

  #takenOver(): ToolwrightError {
    const error = claimedByAnother(this.#claim.runId);
    this.#lost.abort(error);
    return error;
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}

function claimedByAnother(runId: string): ToolwrightError {
  return new ToolwrightError('RunClaimed', `Run '${runId}' is claimed by somebody else.`);
}
