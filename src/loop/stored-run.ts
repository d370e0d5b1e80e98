import type { Answer, CallScope, PendingCall } from '../contract/call.js';
import { CONVERSATION_LOG, type ConversationLog } from '../contract/conversation-log.js';
import {
  CHECKPOINT_STORE,
  type CheckpointStore,
  type RunCheckpoint,
  type SeizeLease,
} from '../contract/run-checkpoint.js';
import { RUN_ID, RUN_STORE, type RunState, type RunStore } from '../contract/run-state.js';
import { checkArguments, checkOptions, invalidOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { onAbort } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { plainJson } from '../kernel/json.js';
import {
  FILLED_TEXT,
  JSON_VALUE,
  LIST,
  optionTable,
  protecting,
  required,
  secret,
} from '../kernel/options.js';
import { ClaimedRun, claimedByAnother, DEFAULT_LEASE_MS, LEASE, lookAgain } from './claimed-run.js';
import { driveLoop } from './drive.js';
import type { ToolLoopResult } from './events.js';
import { foldRun } from './fold-run.js';
import type { RunSurroundings } from './loop-run.js';
import { LOOP_RULES, type ResumeConfig, type ResumeOptions, readResume } from './options.js';
import { askedAnew, type Resumption, resigned, resumeWith } from './resume.js';
import { checkpointStore, driveClaimed, keepsSteps } from './run.js';
import { isSameOwner } from './run-owner.js';

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
  runId: required(RUN_ID),
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
    await claimed.giveBack(askedAnew(error, config.stateSecret));
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
async function claimRun<Store extends RunStore>(
  request: ConstructorParameters<typeof ClaimedRun<Store>>[0],
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
      `Run '${runId}' is not suspended: it was answered already, or the process that was at it has died. No answer was taken; recoverRuns goes on with it.`,
    );
  if (outcome.status === 'taken') throw claimedByAnother(runId);
  claimed.hold(since);
  return { claimed, state: outcome.state };
}

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

const ANSWERED_RUN = optionTable<AnsweredRun>('the answered run', {
  store: required(CHECKPOINT_STORE),
  runId: required(RUN_ID),
});

const ANSWER_OPTIONS = optionTable<AnswerStoredRunOptions>('answerStoredRun', {
  owner: protecting(JSON_VALUE),
  answeredBy: JSON_VALUE,
  stateSecret: protecting(secret(FILLED_TEXT)),
  tools: LOOP_RULES.tools,
});

/** How long others wait where this process dies in between. */
const LEASE_MS = 10_000;

/** Where answers to a run of a store were refused because tools have changed: the store keeps what is asked now. */
export async function keepAskedAnew(
  store: RunStore,
  error: unknown,
  stateSecret: string | undefined,
): Promise<void> {
  const anew = askedAnew(error, stateSecret);
  if (anew === undefined) return;
  const { runId, revision } = anew;
  const claimed = new ClaimedRun({ store, runId, leaseMs: LEASE_MS });
  const outcome = await store.claim({ ...claimed.claim, leaseMs: LEASE_MS });
  // Others have answered meanwhile, or do so now.
  if (outcome.status !== 'claimed') return;
  await claimed.giveBack(outcome.state.revision < revision ? anew : undefined);
}

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
  checkOptions(run, ANSWERED_RUN);
  checkOptions(options, ANSWER_OPTIONS);
  checkArguments({ of: 'answerStoredRun', given: { answers }, rules: { answers: LIST } });
  const { store, runId } = run;
  if (answers.length === 0)
    throw new ToolwrightError(
      'InvalidAnswer',
      `No answer to run '${runId}' was given: its state has in \`pending\` what it waits for, store.read('${runId}') gives it.`,
    );
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
    await claimed.giveBack(askedAnew(error, stateSecret));
    throw error;
  }
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

/** A run that is to end. */
export interface CancelledRun {
  readonly store: CheckpointStore;
  readonly runId: string;
  /** Why; stands in the error of the run. */
  readonly reason?: string;
}

const CANCELLED_RUN = optionTable<CancelledRun>('cancelRun', {
  store: required(CHECKPOINT_STORE),
  runId: required(RUN_ID),
  reason: FILLED_TEXT,
});

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
  checkOptions(options, CANCELLED_RUN);
  const { store, runId } = options;
  const { isEnded, turnOf } = await endStoredRun({ ...options, from: 'anybody' });
  if (turnOf !== undefined) await lookAgain(store, { runId, turnOf });
  return isEnded;
}

/** The same for those who tell its conversation themselves: `isEnded` is false where the run had ended before. */
export async function endStoredRun({
  store,
  runId,
  reason = 'the run was cancelled',
  from,
}: CancelledRun & Pick<SeizeLease, 'from'>): Promise<{
  readonly isEnded: boolean;
  readonly turnOf?: string;
}> {
  const claimed = new ClaimedRun({ store, runId, leaseMs: LEASE_MS });
  const since = performance.now();
  const taken = await store.seize({ ...claimed.claim, leaseMs: LEASE_MS, from });
  if (taken.status === 'taken') throw claimedByAnother(runId);
  if (taken.status === 'missing')
    throw new ToolwrightError('RunNotFound', `The store has no run '${runId}'.`);
  claimed.hold(since);
  const { run } = taken;
  if (run.status === 'ended') {
    await claimed.giveBack();
    return { isEnded: false };
  }
  const { owner, turnOf } = run.state;
  const scope = owner === undefined ? {} : { owner };
  const config = { ...NOBODY, signal: AbortSignal.abort(new DOMException(reason, 'AbortError')) };
  const isSuspended = run.status === 'suspended';
  const suspended = async () =>
    resumeWith(config, await withEntered(store, run.state as RunState), {
      answers: [],
      scope,
      isCertain: true,
    });
  await driveClaimed(config, () => (isSuspended ? suspended() : { lost: foldRun(run) }), {
    claimed,
    first: isSuspended ? 'checkpoint' : 'nothing',
    surroundings: { scope },
  });
  return { isEnded: true, ...(turnOf === undefined ? {} : { turnOf }) };
}

/**
 * The state of a turn with what was said to its conversation of calls that nobody makes any more: that one was done, and
 * what it gave, or that it is not to be made. The history of a run that is ended tells it.
 */
async function withEntered(store: CheckpointStore, given: RunState): Promise<RunState> {
  const { owner, turnOf } = given;
  const { conversations } = store as { readonly conversations?: unknown };
  if (turnOf === undefined || !CONVERSATION_LOG.accepts(conversations)) return given;
  let state = given;
  const conversation = await (conversations as ConversationLog).read(turnOf);
  for (const { content } of conversation?.inbox ?? []) {
    if (content.kind !== 'answers') continue;
    const { answers, answeredBy, owner: named } = content;
    const ends = answers.filter((answer) => 'outcome' in answer || 'result' in answer || isNo(answer));
    if (ends.length === 0 || !isSameOwner(owner, named)) continue;
    const scope = owner === undefined ? {} : { owner };
    try {
      const start = await resumeWith({}, state, { answers: ends, answeredBy, scope, isCertain: true });
      if ('suspended' in start) state = start.suspended as RunState;
    } catch (error) {
      // Whoever has the conversation tells that they were too late, or wrong.
      if (!ToolwrightError.is(error) || error.name !== 'InvalidAnswer') throw error;
    }
  }
  return state;
}

function isNo(answer: Answer): boolean {
  return 'approved' in answer && !answer.approved;
}

/** An aborted run asks nobody. */
const NOBODY = {
  provider: { chat: () => Promise.reject(new Error('A cancelled run asks no model.')) },
  tools: [],
  checkpoint: 'step' as const,
};
