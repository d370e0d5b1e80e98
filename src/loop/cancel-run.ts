import { CHECKPOINT_STORE, type CheckpointStore } from '../contract/run-checkpoint.js';
import type { RunState } from '../contract/run-state.js';
import { checkOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { FILLED_TEXT, optionTable, required } from '../kernel/options.js';
import { ClaimedRun } from './claimed-run.js';
import { foldRun } from './fold-run.js';
import { resumeWith } from './resume.js';
import { driveClaimed } from './run.js';

/** A run that is to end. */
export interface CancelledRun {
  readonly store: CheckpointStore;
  readonly runId: string;
  /** Why; stands in the error of the run. */
  readonly reason?: string;
}

const RUN = optionTable<CancelledRun>('cancelRun', {
  store: required(CHECKPOINT_STORE),
  runId: required(FILLED_TEXT),
  reason: FILLED_TEXT,
});

const LEASE_MS = 10_000;

/**
 * Ends a run of a store, also one that another process holds: it is taken from that process, whose writes are refused
 * from then on and which aborts it with `RunClaimed`. Calls without a result are answered as aborted, so that the
 * history is valid. False where the run had ended before.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunStoreFailed` (518); InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * await cancelRun({ store, runId, reason: 'the customer has left' });
 * ```
 */
export async function cancelRun(options: CancelledRun): Promise<boolean> {
  checkOptions(options, RUN);
  const { store, runId, reason = 'the run was cancelled' } = options;
  const claimed = new ClaimedRun({ store, runId, leaseMs: LEASE_MS });
  const since = performance.now();
  const taken = await store.seize({ ...claimed.claim, leaseMs: LEASE_MS, from: 'anybody' });
  if (taken.status !== 'claimed')
    throw new ToolwrightError('RunNotFound', `The store has no run '${runId}'.`);
  claimed.hold(since);
  const { run } = taken;
  if (run.status === 'ended') {
    await claimed.giveBack();
    return false;
  }
  const { owner } = run.state;
  const scope = owner === undefined ? {} : { owner };
  const config = { ...NOBODY, signal: AbortSignal.abort(new DOMException(reason, 'AbortError')) };
  const isSuspended = run.status === 'suspended';
  await driveClaimed(
    config,
    () =>
      isSuspended
        ? resumeWith(config, run.state as RunState, { answers: [], scope, isCertain: true })
        : { lost: foldRun(run) },
    { claimed, first: isSuspended ? 'checkpoint' : 'nothing', surroundings: { scope } },
  );
  return true;
}

/** An aborted run asks nobody. */
const NOBODY = {
  provider: { chat: () => Promise.reject(new Error('A cancelled run asks no model.')) },
  tools: [],
  checkpoint: 'step' as const,
};
