import {
  type Answer,
  type CallScope,
  OWNER,
  type PendingCall,
  scopeFields,
} from '../../core/contract/call.js';
import type { SchemaSource } from '../../core/contract/json-schema.js';
import type { Logger } from '../../core/contract/ports.js';
import {
  CHECKPOINT_STORE,
  type CheckpointStore,
  type KeptRun,
  type RunCheckpoint,
  type SeizeLease,
} from '../../core/contract/run-checkpoint.js';
import {
  type ClaimOutcome,
  RUN_ID,
  RUN_STORE,
  type RunState,
  type RunStore,
} from '../../core/contract/run-state.js';
import { checkArguments, checkOptions, invalidOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { callListener, repeat } from '../../core/kernel/async.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  COUNT,
  either,
  FILLED_TEXT,
  FUNCTION,
  JSON_VALUE,
  LIST,
  oneOf,
  optionTable,
  protecting,
  RECORD,
  required,
  SECRET_KEY,
  SIGNAL,
} from '../../core/kernel/options.js';
import { logFailure } from '../call/failure-log.js';
import type { OnUnknown } from '../call/invocation.js';
import { missingScopes } from '../call/required-scopes.js';
import { registryOf } from '../call/tool-registry.js';
import { isExpired } from '../call/waits.js';
import {
  ClaimedRun,
  type ClaimRequest,
  claimedByAnother,
  conversationsIn,
  DEFAULT_LEASE_MS,
  LEASE,
  lookAgain,
  type SeizedRun,
  seizeRun,
} from './claimed-run.js';
import { abortedBefore } from './drive.js';
import type { ToolLoopResult, TypedResult } from './events.js';
import { foldRun } from './fold-run.js';
import type { RunDeps } from './loop-run.js';
import { LOOP_RULES, type ResumeConfig, type ResumeOptions, readResume } from './options.js';
import { askedAnew, type Resumption, resigned, resumeWith } from './resume.js';
import { checkpointStore, driveClaimed, savesSteps } from './run.js';
import { checkOwner, isSameOwner } from './run-owner.js';

/** A suspended run in a store. */
export interface StoredRun {
  readonly store: RunStore;
  /** The `runId` of its state. */
  readonly runId: string;
  /**
   * Milliseconds until the run can be claimed again if this process crashes; default: that of the config, otherwise
   * 30,000. The claim is renewed while the run continues. Use more if tools compute for longer without awaiting anything.
   */
  readonly leaseMs?: number;
}

export const STORED_RUN = optionTable<StoredRun>('the stored run', {
  store: required(RUN_STORE),
  runId: required(FILLED_TEXT),
  leaseMs: LEASE,
});

/**
 * Resumes a suspended run from a store, as `resumeToolLoop` does. The run is claimed first: if several processes
 * resume it at the same moment, one continues, and the others get `RunClaimed`; their answers are not applied.
 * Afterwards, a run that is suspended again is free with its new state, and a run that has ended, in any way, is
 * removed from the store. `config.store` is not used.
 *
 * With a signal that is aborted already, the result is `aborted`, and the run still waits.
 *
 * If the process crashes meanwhile, the claim expires, and the run can be resumed again from the earlier state: calls
 * that had been answered since then run again. With a `checkpoint` in the config, or in that with which the run was
 * started, every step is stored instead: no such call runs again, `recoverRuns` continues the run, and the store keeps
 * the ended run. A run that another process has taken over meanwhile is aborted here.
 *
 * If the store fails in the end, the result has the error `RunStoreFailed` (518): with status `failed` and the
 * `state` for a run that is suspended again, otherwise with the status with which the run ended.
 *
 * @throws ToolwrightError `RunNotFound` (516) and `RunClaimed` (517), also for a turn of a conversation, which
 * `answerStoredRun` answers; `InvalidAnswer` (514), `InvalidState` (515), `RunNotAllowed` (523). The run is then free
 * again, unchanged. Errors of the store while the run is claimed are thrown unchanged.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * // Later, in any process; the answers name what `run.pending` lists:
 * const resumed = await resumeStoredRun({ provider, tools }, { store, runId }, answers, { data: { userId } });
 * ```
 */
export async function resumeStoredRun<Source extends SchemaSource = SchemaSource>(
  config: ResumeConfig & { readonly output?: Source },
  run: StoredRun,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): Promise<TypedResult<Source>> {
  const read = readResume({ config, options, others: invalidOptions(run, STORED_RUN) });
  const { scope = {} } = read;
  const result = await driveStoredRun(config, run, { resumption: { ...read, answers }, deps: { scope } });
  return result as TypedResult<Source>;
}

/** The same as {@link resumeStoredRun}, with observers. */
export async function driveStoredRun(
  config: ResumeConfig,
  { store, runId, leaseMs = config.leaseMs ?? DEFAULT_LEASE_MS }: StoredRun,
  { resumption, deps }: { readonly resumption: Resumption; readonly deps: RunDeps },
): Promise<ToolLoopResult> {
  if (savesSteps(config)) checkpointStore(store);
  const { logger } = config;
  const seized = await claimSuspended({ store, runId, leaseMs, logger });
  const { turnOf } = seized.run.state;
  if (turnOf !== deps.turnOf) {
    await seized.claimed.giveBack();
    const message = `Run '${runId}' is a turn of the conversation '${turnOf}', which continues it itself: answer with answerStoredRun, or in the conversation. No answer was accepted.`;
    throw new ToolwrightError('RunClaimed', message);
  }
  const { signal } = deps.scope;
  // A turn is ended by its signal; a run keeps its questions if the caller has left already.
  if (turnOf === undefined && signal?.aborted) {
    await seized.claimed.giveBack();
    return abortedBefore(seized.run.state.messages, signal);
  }
  return driveSeizedRun({ ...config, store }, seized, { store, deps, resumption });
}

interface SeizedDrive {
  readonly store: RunStore;
  readonly deps: RunDeps;
  /** Default: without answers. */
  readonly resumption?: Resumption;
  /** Changes the state of a suspended run before it continues. */
  readonly prepare?: (state: RunState) => Promise<RunState>;
}

/** Continues a claimed run: from its state if it was suspended, otherwise from its entries. */
export function driveSeizedRun(
  config: ResumeConfig,
  {
    claimed,
    run,
  }: Pick<SeizedRun, 'claimed'> & { readonly run: Pick<KeptRun, 'status' | 'state' | 'entries'> },
  { store, deps, resumption, prepare }: SeizedDrive,
): Promise<ToolLoopResult> {
  const { scope } = deps;
  const from = run.status === 'suspended' ? 'suspended' : 'lost';
  const start = async () => {
    if (from === 'lost') return { record: foldRun(run) };
    const state = run.state as RunState;
    const given = prepare === undefined ? state : await prepare(state);
    return {
      record: await resumeWith(config, given, { answers: [], scope, ...resumption, isCertain: true }),
    };
  };
  // Unless the config has another value, the run saves its steps as before.
  const kept = CHECKPOINT_STORE.accepts(store) ? run.state.checkpoint : undefined;
  const { checkpoint = kept } = config;
  return driveClaimed(withoutUndefined({ ...config, checkpoint }), start, { claimed, store, from, deps });
}

/**
 * Claims a suspended run.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517), `RunNotSuspended`.
 */
async function claimSuspended(request: ClaimRequest) {
  const { store, runId, leaseMs } = request;
  const claimed = new ClaimedRun(request);
  // The id often comes from the address of a request.
  const outcome: ClaimOutcome = RUN_ID.accepts(runId)
    ? await store.claim({ ...claimed.claim, leaseMs })
    : { status: 'missing' };
  if (outcome.status === 'missing')
    throw new ToolwrightError('RunNotFound', `The store has no suspended run '${runId}'.`);
  if (outcome.status === 'lost')
    throw new ToolwrightError(
      'RunNotSuspended',
      `Run '${runId}' is not suspended: it was already answered, or its process has crashed and recoverRuns continues it. No answer was accepted.`,
    );
  if (outcome.status === 'taken') throw claimedByAnother(runId);
  claimed.hold();
  return { claimed, run: { status: 'suspended', state: outcome.state, entries: [] } } as const;
}

/** A suspended run of a store that also stores running runs. */
export interface AnsweredRun {
  readonly store: CheckpointStore;
  readonly runId: string;
}

/** Options of answers. */
export interface AnswerStoredRunOptions {
  /** The owner; it must be the run's owner. */
  readonly owner?: unknown;
  /** Who answered, if not the owner: any JSON. */
  readonly answeredBy?: unknown;
  /** The secret of the run's config, if it has one. */
  readonly stateSecret?: string;
  /** The tools of the run. Edited arguments are checked against them, and refused without them. */
  readonly tools?: ResumeConfig['tools'];
}

const ANSWERED_RUN = optionTable<AnsweredRun>('the answered run', {
  store: required(CHECKPOINT_STORE),
  runId: required(FILLED_TEXT),
});

const ANSWER_OPTIONS = optionTable<AnswerStoredRunOptions>('answerStoredRun', {
  owner: protecting(OWNER),
  answeredBy: JSON_VALUE,
  stateSecret: protecting(SECRET_KEY),
  tools: LOOP_RULES.tools,
});

/** How long other processes wait if this one crashes meanwhile. */
const LEASE_MS = 10_000;

/** Stores the current questions, if answers were refused because tools have changed. */
export async function saveAskedAnew(
  store: RunStore,
  error: unknown,
  stateSecret: string | undefined,
): Promise<void> {
  const anew = askedAnew(error, stateSecret);
  if (anew === undefined) return;
  const { runId, revision } = anew;
  const claimed = new ClaimedRun({ store, runId, leaseMs: LEASE_MS });
  const outcome = await store.claim({ ...claimed.claim, leaseMs: LEASE_MS });
  // Other users have answered meanwhile, or do so now.
  if (outcome.status !== 'claimed') return;
  await claimed.giveBack(outcome.state.revision < revision ? anew : undefined);
}

/**
 * Stores answers of a suspended run without continuing it here. With the last answer, the run becomes running without
 * a holder: the next `recoverRuns`, in any process, continues it, and a turn of a conversation its conversation.
 * Returns the remaining waits.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517), `InvalidAnswer` (514), `RunNotAllowed` (523); the
 * run is then unchanged. InvalidOptionsError (521) for invalid options.
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
      `No answer to run '${runId}' was given. Its open questions are in \`state.pending\` of store.read('${runId}').`,
    );
  const { owner, answeredBy, stateSecret, tools } = options;
  const {
    claimed,
    run: { state },
  } = await claimSuspended({ store, runId, leaseMs: LEASE_MS });
  try {
    const scope = { ...state.scope, owner };
    const given = { answers, answeredBy: plainJson(answeredBy), scope, isCertain: true };
    const answered = await resumeWith({ stateSecret, tools, store }, state, given);
    const { claim } = claimed;
    let isSaved: boolean;
    if (answered.pending.length > 0) isSaved = await store.release(claim, resigned(answered, stateSecret));
    else {
      // With all its answers it becomes a running run; freed, it can be recovered.
      const { pending: _pending, signature: _signature, ...open } = answered;
      const checkpoint: RunCheckpoint = { ...open, status: 'running' };
      isSaved = (await store.checkpoint(claim, checkpoint)) && (await store.release(claim));
    }
    if (!isSaved) throw claimedByAnother(runId);
    claimed.leave();
    if (answered.pending.length === 0) await lookAgain(store, state);
    return answered.pending;
  } catch (error) {
    await claimed.giveBack(askedAnew(error, stateSecret));
    throw error;
  }
}

/** A run that is to end. */
export interface CancelledRun {
  readonly store: CheckpointStore;
  readonly runId: string;
  /** The reason, for the error of the run. */
  readonly reason?: string;
}

const CANCELLED_RUN = optionTable<CancelledRun>('cancelRun', {
  store: required(CHECKPOINT_STORE),
  runId: required(RUN_ID),
  reason: FILLED_TEXT,
});

/**
 * Ends a run of a store, even if another process holds it: the run is taken from that process, whose writes are
 * refused from then on and which aborts it with `RunClaimed`. Calls without a result are answered as aborted, so that
 * the history is valid. Returns false if the run had already ended.
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

/** The same without notifying its conversation: `isEnded` is false if the run had already ended. */
export async function endStoredRun({
  store,
  runId,
  reason = 'the run was cancelled',
  from,
}: CancelledRun & Pick<SeizeLease, 'from'>): Promise<{
  readonly isEnded: boolean;
  readonly turnOf?: string;
}> {
  const seized = await seizeRun({ store, runId, leaseMs: LEASE_MS, from });
  const { claimed, run } = seized;
  if (run.status === 'ended') {
    await claimed.giveBack();
    return { isEnded: false };
  }
  const { owner, turnOf, scope } = run.state;
  const config = {
    provider: { chat: () => Promise.reject(new Error('A cancelled run sends no requests to a model.')) },
    tools: [],
    checkpoint: 'step' as const,
    signal: AbortSignal.abort(new DOMException(reason, 'AbortError')),
  };
  const prepare = (state: RunState) => withEnteredAnswers(store, state);
  await driveSeizedRun(config, seized, { store, deps: { scope: { ...scope, owner } }, prepare });
  return { isEnded: true, turnOf };
}

/**
 * The state of a turn with the answers in its conversation's inbox that end calls, because they report a result or
 * refuse the call. The history of the ended run then contains them.
 */
async function withEnteredAnswers(store: CheckpointStore, given: RunState): Promise<RunState> {
  const { owner, turnOf } = given;
  let state = given;
  const conversation = turnOf === undefined ? undefined : await conversationsIn(store)?.read(turnOf);
  for (const { content } of conversation?.inbox ?? []) {
    if (content.kind !== 'answers') continue;
    const { answers, answeredBy, owner: named } = content;
    const ends = answers.filter(
      (answer) => 'outcome' in answer || 'result' in answer || ('approved' in answer && !answer.approved),
    );
    if (ends.length === 0 || !isSameOwner(owner, named)) continue;
    const given = { answers: ends, answeredBy, scope: { owner }, isCertain: true };
    try {
      state = await resumeWith({}, state, given);
    } catch (error) {
      // The holder of the conversation reports that they were too late, or wrong.
      if (!ToolwrightError.is(error) || error.name !== 'InvalidAnswer') throw error;
    }
  }
  return state;
}

/** The outcome of a run that was taken over. */
export type RecoveredRun =
  /** It has ended, or is suspended. */
  | { readonly runId: string; readonly result: ToolLoopResult }
  /**
   * It could not continue here, or another process has taken it over; it is recovered again when the lease has
   * expired.
   */
  | { readonly runId: string; readonly error: unknown };

/** Options to continue lost runs. */
export interface RecoverOptions {
  readonly store: CheckpointStore;
  /** The config of the runs, or a function that returns it for each. A run gets only tools that it had before. */
  readonly config: ResumeConfig | ((run: KeptRun) => ResumeConfig | Promise<ResumeConfig>);
  /** Returns the scope of each run. Owner, channel, chat and conversation are the stored ones, unless it sets them. */
  readonly scope?: (run: KeptRun) => CallScope | Promise<CallScope>;
  /**
   * What happens to an interrupted call whose outcome is unknown. `ask`: the run is suspended until a user states the
   * outcome. `error`: the model is informed that the outcome is unknown. `rerun`: the call is executed again.
   * Default: `ask`; for a task of MCP, `error`.
   */
  readonly onUnknown?: OnUnknown;
  /** The most runs that continue at the same time; default: 4. */
  readonly maxConcurrency?: number;
  /** Milliseconds until a run can be recovered again; default: 30,000. */
  readonly leaseMs?: number;
  /** After an abort, no more runs are taken over. Runs that were taken over continue. */
  readonly signal?: AbortSignal;
  /** Receives each run immediately. */
  readonly onResult?: (recovered: RecoveredRun) => void;
}

const RECOVER_OPTIONS = optionTable<RecoverOptions>('recoverRuns', {
  store: required(CHECKPOINT_STORE),
  config: required({ ...either(RECORD, FUNCTION), fix: '{ provider, tools }, or (run) => config' }),
  scope: protecting(FUNCTION),
  onUnknown: oneOf('ask', 'error', 'rerun'),
  maxConcurrency: COUNT,
  leaseMs: LEASE,
  signal: SIGNAL,
  onResult: FUNCTION,
});

/**
 * Takes over every run whose process crashed, and continues it: settled calls are not executed again, and stored
 * messages are not requested again. Resolves when all lost runs have ended or are suspended. Call it at the start of
 * a process, and periodically; any number of processes may do so at the same time.
 *
 * A run is lost when its lease has expired: `leaseMs` of its config after its process crashed. A suspended run with
 * an expired answer (`expiresAt` in its `pending`) continues without that answer.
 *
 * @throws InvalidOptionsError (521) for invalid options, and errors of the store while it is searched.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const config = { provider, model: 'gpt-5', tools, store, checkpoint: 'step' } as const;
 * for (const { runId } of await recoverRuns({ store, config })) console.log(`${runId} went on`);
 * ```
 */
export async function recoverRuns(options: RecoverOptions): Promise<readonly RecoveredRun[]> {
  return recoverAll(options, undefined);
}

/** The most suspended runs that one call checks. */
const MOST_EXPIRED = 1_000;

/** The same; when `left` is aborted, runs that continue here are left unchanged to other processes. */
async function recoverAll(
  options: RecoverOptions,
  left: AbortSignal | undefined,
): Promise<readonly RecoveredRun[]> {
  checkOptions(options, RECOVER_OPTIONS);
  const { maxConcurrency = 4, onResult } = options;
  const recovered: RecoveredRun[] = [];
  const runs = seizedRuns(options);
  const work = async (): Promise<void> => {
    for await (const seized of runs) {
      const outcome = await recover(options, seized, left);
      recovered.push(outcome);
      callListener(
        () => onResult?.(outcome),
        () => {},
      );
    }
  };
  await Promise.all(Array.from({ length: maxConcurrency }, work));
  return recovered;
}

/** Claims lost runs, then suspended runs with an expired answer, until there are none. */
async function* seizedRuns(options: RecoverOptions): AsyncGenerator<SeizedRun> {
  const { store, leaseMs = DEFAULT_LEASE_MS, signal } = options;
  while (!signal?.aborted) {
    const claim = crypto.randomUUID();
    const since = performance.now();
    const taken = await store.claimLost({ claim, leaseMs });
    if (taken.status !== 'claimed') break;
    const { run } = taken;
    const claimed = new ClaimedRun({ store, runId: run.runId, leaseMs }, claim);
    claimed.hold(since);
    yield { run, claimed };
  }
  const expired = (await store.expiredRuns?.({ of: 'others', limit: MOST_EXPIRED })) ?? [];
  for (const { runId } of expired) {
    if (signal?.aborted) return;
    // Its deadline must have passed by this clock, too.
    const state = await store.load(runId);
    if (!state?.pending.some((wait) => isExpired(wait))) continue;
    let seized: SeizedRun;
    try {
      seized = await seizeRun({ store, runId, leaseMs, from: 'nobody' });
      if (seized.run.status !== 'suspended') {
        await seized.claimed.giveBack();
        continue;
      }
    } catch (error) {
      if (ToolwrightError.is(error) && ['RunNotFound', 'RunClaimed'].includes(error.name)) continue;
      throw error;
    }
    yield seized;
  }
}

async function recover(
  options: RecoverOptions,
  seized: SeizedRun,
  left: AbortSignal | undefined,
): Promise<RecoveredRun> {
  const { run, claimed } = seized;
  const { runId, state } = run;
  const { store, onUnknown = state.isOneCall && 'error' } = options;
  try {
    const given = typeof options.config === 'function' ? await options.config(run) : options.config;
    const checkpoint = [given.checkpoint, state.checkpoint].includes('call') ? 'call' : 'step';
    const config: ResumeConfig = { ...given, checkpoint };
    const stored = withoutUndefined({ ...state.scope, owner: state.owner });
    const scope = { ...stored, ...withoutUndefined(scopeFields(await options.scope?.(run))) };
    readResume({ config, options: { scope } });
    checkOwner({ owner: state.owner, isCertain: true }, scope);
    if (state.isOneCall) {
      // Left to another process if this one lacks the tool or its scopes.
      const [name = ''] = state.tools ?? [];
      const tool = registryOf(config.tools).offered(name);
      const missing = tool && missingScopes(tool, scope.scopes);
      const what = missing ? `the scopes ${missing.join(', ')}` : `the tool '${name}'`;
      const message = `Run '${runId}' is left to its server: this process lacks ${what}.`;
      if (missing?.length !== 0) throw new ToolwrightError('RunNotAllowed', message);
    }
    const deps = { scope, onUnknown, left };
    return { runId, result: await driveSeizedRun(config, seized, { store, deps }) };
  } catch (error) {
    // A freed lost run would be taken over again immediately; a suspended one may still be answered.
    if (run.status === 'suspended') await claimed.giveBack();
    else claimed.leave();
    return { runId, error };
  }
}

/** A lost run to continue here if it has no holder, and its observers. */
interface LostRunOptions extends ClaimRequest<CheckpointStore> {
  readonly deps: RunDeps;
  /** Receives the run before it continues, when no other process can change it. */
  readonly onTaken: (run: KeptRun) => Promise<void>;
}

/**
 * Continues one lost run, as {@link recoverRuns} does; `undefined` if it has ended or was suspended meanwhile.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517) if another process holds it.
 */
export async function driveLostRun(
  config: ResumeConfig,
  { deps, onTaken, ...request }: LostRunOptions,
): Promise<ToolLoopResult | undefined> {
  const seized = await seizeRun({ ...request, from: 'nobody' });
  const { claimed, run } = seized;
  if (run.status !== 'running') {
    await claimed.giveBack();
    return undefined;
  }
  try {
    await onTaken(run);
  } catch (error) {
    await claimed.giveBack();
    throw error;
  }
  return driveSeizedRun(config, seized, { store: request.store, deps });
}

/** How lost runs are continued. A store of conversations continues the runs of their turns itself. */
export interface RunRecoveryOptions
  extends Pick<RecoverOptions, 'store' | 'config' | 'scope' | 'leaseMs' | 'onUnknown'> {
  /** When aborted, the runs that are continued here are left unchanged to other processes. */
  readonly left?: AbortSignal;
  readonly logger?: Logger;
}

/**
 * Periodically searches for runs whose process crashed, and continues them. The returned function ends this, and
 * resolves when the runs that are continued here have ended or are suspended.
 */
export function recoverPeriodically({
  logger,
  left,
  leaseMs = DEFAULT_LEASE_MS,
  ...others
}: RunRecoveryOptions): () => Promise<void> {
  const onResult: RecoverOptions['onResult'] = (run) => {
    if (!('error' in run)) return;
    const { runId, error } = run;
    logFailure(logger, { what: 'A run could not be continued', error, at: { runId } });
  };
  return repeat(async (signal) => {
    try {
      await recoverAll({ ...others, leaseMs, signal, onResult }, left);
    } catch (error) {
      logFailure(logger, { what: 'The lost runs could not be read from the store', error });
    }
    return leaseMs / 3;
  });
}
