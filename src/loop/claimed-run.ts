import type { RunState } from '../contract/run-state.js';
import type { RunClaim, RunStore } from '../contract/run-store.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../invocation/error-message.js';
import { MAX_TIMER_MS } from '../invocation/max-timer-ms.js';

/** What is to be claimed, and where. */
export interface ClaimRequest {
  readonly store: RunStore;
  readonly runId: string;
  readonly leaseMs: number;
}

/**
 * Claims a run.
 *
 * @throws ToolwrightError `RunNotFound` (516) and `RunClaimed` (517).
 */
export async function claimRun(request: ClaimRequest): Promise<ClaimedRun> {
  const { store, runId, leaseMs } = request;
  const claim = { runId, claim: crypto.randomUUID() };
  const claimedAt = performance.now();
  const outcome = await store.claim({ ...claim, leaseMs });
  if (outcome.status === 'missing')
    throw new ToolwrightError('RunNotFound', `The store has no suspended run '${runId}'.`);
  if (outcome.status === 'taken') throw claimedByAnother(runId);
  return new ClaimedRun(request, { claim, claimedAt, state: outcome.state });
}

/** A run that is this process's, as long as it renews its lease, which it does at every third of it. */
export class ClaimedRun {
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
