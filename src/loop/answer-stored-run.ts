import type { Answer, PendingCall } from '../contract/call.js';
import { CHECKPOINT_STORE, type CheckpointStore, type RunCheckpoint } from '../contract/run-checkpoint.js';
import type { RunState } from '../contract/run-state.js';
import { checkOptions } from '../errors/author-fault.js';
import { plainJson } from '../kernel/json.js';
import { FILLED_TEXT, JSON_VALUE, optionTable, protecting, required, secret } from '../kernel/options.js';
import { claimedByAnother } from './claimed-run.js';
import { LOOP_RULES, type ResumeConfig } from './options.js';
import { resumeWith } from './resume.js';
import { claimRun } from './stored-run.js';
import { signState } from './suspend.js';

/** A suspended run of a store that keeps runs under way, too. */
export interface AnsweredRun {
  readonly store: CheckpointStore;
  readonly runId: string;
}

/** What answers bring along. */
export interface AnswerStoredRunOptions {
  /** On whose behalf the run takes place; it has to be the run's owner. */
  readonly owner?: unknown;
  /** Who answered, where that is not the owner: any JSON. */
  readonly answeredBy?: unknown;
  /** That of the run's config, where it has one. */
  readonly stateSecret?: string;
  /** The tools of the run: edited arguments are checked against them, and refused without them. */
  readonly tools?: ResumeConfig['tools'];
}

const RUN = optionTable<AnsweredRun>('the answered run', {
  store: required(CHECKPOINT_STORE),
  runId: required(FILLED_TEXT),
});

const OPTIONS = optionTable<AnswerStoredRunOptions>('answerStoredRun', {
  owner: JSON_VALUE,
  answeredBy: JSON_VALUE,
  stateSecret: protecting(secret(FILLED_TEXT)),
  tools: LOOP_RULES.tools,
});

/** How long others wait where this process dies in between. */
const LEASE_MS = 10_000;

/**
 * Keeps answers of a suspended run without going on with it here. With the last of them the run is one under way that
 * nobody holds: the next `recoverRuns`, in whatever process, goes on with it. Gives what it still waits for.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517), `InvalidAnswer` (514), `RunNotAllowed` (523); the
 *   run is then as it was. InvalidOptionsError (521) for options that are wrong.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * await answerStoredRun({ store, runId }, [{ id: 'approval_…', approved: true }], { owner: { user: 'u1' } });
 * ```
 */
export async function answerStoredRun(
  run: AnsweredRun,
  answers: readonly Answer[],
  options: AnswerStoredRunOptions = {},
): Promise<readonly PendingCall[]> {
  checkOptions(run, RUN);
  checkOptions(options, OPTIONS);
  const { store, runId } = run;
  const { owner, answeredBy, stateSecret, tools } = options;
  const { claimed, state } = await claimRun({ store, runId, leaseMs: LEASE_MS });
  try {
    const scope = owner === undefined ? {} : { owner };
    const given = { answers, answeredBy: plainJson(answeredBy), scope, isCertain: true };
    const start = await resumeWith({ stateSecret, tools, store }, state, given);
    const answered = ('suspended' in start ? start.suspended : state) as RunState;
    const isKept =
      answered.pending.length > 0
        ? await store.release(claimed.claim, resigned(answered, stateSecret))
        : await leaveToOthers(store, claimed.claim, answered);
    if (!isKept) throw claimedByAnother(runId);
    claimed.leave();
    return answered.pending;
  } catch (error) {
    await claimed.giveBack();
    throw error;
  }
}

/** The state with the answers that it has; it is another one than before. */
function resigned(state: RunState, stateSecret: string | undefined): RunState {
  const changed = { ...state, revision: state.revision + 1 };
  return signState(changed, { secret: stateSecret, isOwned: state.owner !== undefined });
}

/** A run with all its answers is one under way; freed, it can be recovered. */
async function leaveToOthers(
  store: CheckpointStore,
  claim: Parameters<CheckpointStore['checkpoint']>[0],
  { pending: _pending, signature: _signature, ...state }: RunState,
): Promise<boolean> {
  const checkpoint: RunCheckpoint = { ...state, status: 'running' };
  return (await store.checkpoint(claim, checkpoint)) && (await store.release(claim));
}
