import type { Answer, CallScope } from '../contract/call.js';
import { RUN_STORE, type RunState, type RunStore } from '../contract/run-state.js';
import { invalidOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { onAbort } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { optionTable, required, STORED_ID } from '../kernel/options.js';
import { ClaimedRun, type ClaimRequest, claimedByAnother, DEFAULT_LEASE_MS, LEASE } from './claimed-run.js';
import { driveLoop } from './drive.js';
import type { ToolLoopResult } from './events.js';
import type { RunSurroundings } from './loop-run.js';
import { type ResumeConfig, type ResumeOptions, readResume } from './options.js';
import { type Resumption, resumeWith } from './resume.js';
import { checkpointStore, driveClaimed, keepsSteps } from './run.js';

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
  runId: required(STORED_ID),
  leaseMs: LEASE,
});

/**
 * Goes on with a suspended run out of a store, as `resumeToolLoop` does. The run is claimed first: of
 * processes that resume it at the same moment one goes on, and the others get `RunClaimed`; their answers were
 * not taken. Afterwards a run that is suspended again is free with its new state, and one that has ended, in
 * whatever way, is gone from the store. `config.store` is not used.
 *
 * Where the process dies in between, the claim runs out, and the run can be resumed again from the state
 * before: calls that had been answered by then run again. With `checkpoint: 'step'` every step is kept instead, no
 * such call runs again, `recoverRuns` goes on with the run, and the store keeps it when it has ended. A run that
 * another process has taken over meanwhile is aborted here.
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
  if (keepsSteps(config)) {
    const { claimed, state } = await claimRun({ store: checkpointStore(store), runId, leaseMs });
    const { surroundings } = resumption;
    const start = () =>
      resumeWith({ ...config, store }, state, { ...resumption.resumption, isCertain: true });
    return driveClaimed(config, start, { claimed, first: 'checkpoint', surroundings });
  }
  const { claimed, state } = await claimRun({ store, runId, leaseMs });
  const { left } = resumption.surroundings;
  const unfollow = left === undefined ? () => {} : onAbort(left, () => claimed.abandon(leftSuspended(runId)));
  const result = await drive({ ...config, store }, { claimed, state }, resumption).finally(unfollow);
  claimed.lost.throwIfAborted();
  if (result.state !== undefined) return result;
  const ended = await forget(claimed, result);
  if (config.onLimit === 'throw' && ended.status === 'limit') throw ended.error;
  return ended;
}

/** Somebody may give the answers again: as where this process had died. */
function leftSuspended(runId: string): ToolwrightError {
  const message = `Run '${runId}' was left as it was suspended, and its answers were not kept: this application is shutting down. It can be resumed with them when its lease has ended; calls that it had made since are then made again, under the same keys. With checkpoint: 'step' others go on with it by themselves.`;
  return new ToolwrightError('RunClaimed', message);
}

async function drive(
  config: ResumeConfig,
  { claimed, state }: Claimed<RunStore>,
  { resumption, surroundings }: StoredResumption,
): Promise<ToolLoopResult> {
  const signal = config?.signal ? AbortSignal.any([config.signal, claimed.lost]) : claimed.lost;
  // A throw at the limit would come after the calls have run; then the run must be forgotten first.
  const onLimit = config?.onLimit === 'throw' ? 'return' : config?.onLimit;
  try {
    const start = await resumeWith(config, state, { ...resumption, isCertain: true });
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

/** A suspended run that is this process's. */
interface Claimed<Store extends RunStore> {
  readonly claimed: ClaimedRun<Store>;
  readonly state: RunState;
}

/**
 * Claims a run.
 *
 * @throws ToolwrightError `RunNotFound` (516) and `RunClaimed` (517).
 */
export async function claimRun<Store extends RunStore>(
  request: ClaimRequest<Store>,
): Promise<Claimed<Store>> {
  const { store, runId, leaseMs } = request;
  const claimed = new ClaimedRun(request);
  const since = performance.now();
  const outcome = await store.claim({ ...claimed.claim, leaseMs });
  if (outcome.status === 'missing')
    throw new ToolwrightError('RunNotFound', `The store has no suspended run '${runId}'.`);
  if (outcome.status === 'lost')
    throw new ToolwrightError(
      'RunNotSuspended',
      `Run '${runId}' is not suspended: the process that was at it has died. No answer was taken; recoverRuns goes on with it.`,
    );
  if (outcome.status === 'taken') throw claimedByAnother(runId);
  claimed.hold(since);
  return { claimed, state: outcome.state };
}
