import type { OnUnknown } from '../call/invocation.js';
import { isExpired } from '../call/waits.js';
import type { CallScope } from '../contract/call.js';
import { CHECKPOINT_STORE, type CheckpointStore, type KeptRun } from '../contract/run-checkpoint.js';
import type { RunState } from '../contract/run-state.js';
import { checkOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { callListener } from '../kernel/async.js';
import {
  COUNT,
  either,
  FUNCTION,
  oneOf,
  optionTable,
  protecting,
  RECORD,
  required,
  SIGNAL,
} from '../kernel/options.js';
import { ClaimedRun, claimedByAnother, DEFAULT_LEASE_MS, LEASE } from './claimed-run.js';
import type { ToolLoopResult } from './events.js';
import { foldRun } from './fold-run.js';
import type { RunSurroundings } from './loop-run.js';
import { type ResumeConfig, readResume } from './options.js';
import { resumeWith } from './resume.js';
import { driveClaimed } from './run.js';
import { checkOwner } from './run-owner.js';

/** What became of a run that was taken over. */
export type RecoveredRun =
  /** It has ended, or is suspended. */
  | { readonly runId: string; readonly result: ToolLoopResult }
  /** It could not go on here, or somebody else has taken it over; it is recovered again when the lease has ended. */
  | { readonly runId: string; readonly error: unknown };

/** How lost runs go on. */
export interface RecoverOptions {
  readonly store: CheckpointStore;
  /** That of the runs, or one for each: its tools are those that a run gets, as far as it had them before. */
  readonly config: ResumeConfig | ((run: KeptRun) => ResumeConfig | Promise<ResumeConfig>);
  /** The surroundings of each run; its owner is the one that the run was kept with. */
  readonly scope?: (run: KeptRun) => CallScope | Promise<CallScope>;
  /**
   * What becomes of a call that ran when its process died, of a tool that is neither `readOnly` nor `idempotent` and
   * cannot tell: `ask` suspends the run until somebody says what came of it (default), `error` tells the model that
   * nobody knows, `rerun` makes it again.
   */
  readonly onUnknown?: OnUnknown;
  /** Runs that go on at the same time; default 4. */
  readonly maxConcurrency?: number;
  /** Milliseconds until a run can be recovered again where this process dies, too; default 30,000. */
  readonly leaseMs?: number;
  /** Aborted, no more runs are taken over; those under way go on. */
  readonly signal?: AbortSignal;
  /** Hears of each run at once. */
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
 * Takes over every run whose process has died, and goes on with it where it stood: what is settled is not done again,
 * and the model is not asked again for a message that was kept. Resolves when all that were lost have ended or are
 * suspended. Call it at the start of a process, and now and then; any number of processes may do so at once.
 *
 * A run is lost when its lease has ended: `leaseMs` of its config after its process died. A suspended run of which an
 * answer has expired (`expiresAt` of its `pending`) goes on without that answer.
 *
 * @throws InvalidOptionsError (521) for options that are none, and what the store throws while runs are looked for.
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

/** The same; where `left` is aborted, what goes on here is left as it stands, to other processes. */
export async function recoverAll(
  options: RecoverOptions,
  left: AbortSignal | undefined,
): Promise<readonly RecoveredRun[]> {
  checkOptions(options, RECOVER_OPTIONS);
  const { maxConcurrency = 4, signal, onResult } = options;
  const recovered: RecoveredRun[] = [];
  const report = async (taken: TakenOver): Promise<void> => {
    const outcome = await recover(options, { ...taken, left });
    recovered.push(outcome);
    callListener(
      () => onResult?.(outcome),
      () => {},
    );
  };
  const recoverOthers = async (): Promise<void> => {
    while (!signal?.aborted) {
      const lost = await claimLost(options);
      if (lost === undefined) return;
      await report(lost);
    }
  };
  await Promise.all(Array.from({ length: maxConcurrency }, recoverOthers));
  const expired = [...((await options.store.expiredRuns?.({ of: 'others', limit: MOST_EXPIRED })) ?? [])];
  const settleOthers = async (): Promise<void> => {
    for (let next = expired.shift(); next !== undefined && !signal?.aborted; next = expired.shift()) {
      const taken = await claimExpired(options, next.runId);
      if (taken !== undefined) await report(taken);
    }
  };
  await Promise.all(Array.from({ length: maxConcurrency }, settleOthers));
  return recovered;
}

/** Suspended runs that are looked at by one call. */
const MOST_EXPIRED = 1_000;

/** A kept run that is to go on here, if nobody holds it, and who watches it. */
interface LostRunOptions {
  readonly store: CheckpointStore;
  readonly runId: string;
  readonly leaseMs: number;
  readonly surroundings: Pick<RunSurroundings, 'scope' | 'sink' | 'onUnknown' | 'left'>;
  /** Sees the run as nobody else can change it any more, before it goes on. */
  readonly onTaken: (run: KeptRun) => Promise<void>;
}

/**
 * Goes on with one lost run, as {@link recoverRuns} does; `undefined` where it has ended or was suspended since
 * somebody saw it under way.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517) where somebody holds it.
 */
export async function driveLostRun(
  config: ResumeConfig,
  { store, runId, leaseMs, surroundings, onTaken }: LostRunOptions,
): Promise<ToolLoopResult | undefined> {
  const claimed = new ClaimedRun({ store, runId, leaseMs });
  const since = performance.now();
  const taken = await store.seize({ ...claimed.claim, leaseMs, from: 'nobody' });
  if (taken.status === 'missing')
    throw new ToolwrightError('RunNotFound', `The store has no run '${runId}'.`);
  if (taken.status === 'taken') throw claimedByAnother(runId);
  if (taken.run.status !== 'running') {
    await claimed.giveBack();
    return undefined;
  }
  claimed.hold(since);
  try {
    await onTaken(taken.run);
  } catch (error) {
    await claimed.giveBack();
    throw error;
  }
  return driveClaimed(config, () => ({ lost: foldRun(taken.run) }), {
    claimed,
    first: 'nothing',
    surroundings,
  });
}

/** A lost run that is this process's now. */
interface TakenOver {
  readonly run: KeptRun;
  readonly claimed: ClaimedRun<CheckpointStore>;
  readonly left?: AbortSignal | undefined;
}

async function claimLost({
  store,
  leaseMs = DEFAULT_LEASE_MS,
}: RecoverOptions): Promise<TakenOver | undefined> {
  const claim = crypto.randomUUID();
  const since = performance.now();
  const taken = await store.claimLost({ claim, leaseMs });
  if (taken.status !== 'claimed') return undefined;
  const { run } = taken;
  const claimed = new ClaimedRun({ store, runId: run.runId, leaseMs }, claim);
  claimed.hold(since);
  return { run, claimed };
}

/** A suspended run of which an answer comes too late by this clock, too, and that nobody else has taken meanwhile. */
async function claimExpired(
  { store, leaseMs = DEFAULT_LEASE_MS }: RecoverOptions,
  runId: string,
): Promise<TakenOver | undefined> {
  const state = await store.load(runId);
  if (!state?.pending.some((wait) => isExpired(wait))) return undefined;
  const claimed = new ClaimedRun({ store, runId, leaseMs });
  const since = performance.now();
  const taken = await store.seize({ ...claimed.claim, leaseMs, from: 'nobody' });
  if (taken.status !== 'claimed') return undefined;
  if (taken.run.status !== 'suspended') {
    await claimed.giveBack();
    return undefined;
  }
  claimed.hold(since);
  return { run: taken.run, claimed };
}

async function recover(options: RecoverOptions, { run, claimed, left }: TakenOver): Promise<RecoveredRun> {
  const { runId } = run;
  const { onUnknown } = options;
  try {
    const config = await configOf(options, run);
    const scope = await scopeOf(options, run);
    readResume({ config, options: { scope } });
    checkOwner({ owner: run.state.owner, isCertain: true }, scope);
    const surroundings = { scope, ...(onUnknown && { onUnknown }), ...(left && { left }) };
    const isSuspended = run.status === 'suspended';
    const start = () =>
      isSuspended
        ? resumeWith(config, run.state as RunState, { answers: [], scope, isCertain: true })
        : { lost: foldRun(run) };
    const first = isSuspended ? 'checkpoint' : 'nothing';
    const result = await driveClaimed(config, start, { claimed, first, surroundings });
    return { runId, result };
  } catch (error) {
    // Freed at once, a lost run would be taken over at once again; a suspended one may still be answered.
    if (run.status === 'suspended') await claimed.giveBack();
    else claimed.leave();
    return { runId, error };
  }
}

async function configOf({ config }: RecoverOptions, run: KeptRun): Promise<ResumeConfig> {
  const given = typeof config === 'function' ? await config(run) : config;
  return { ...given, checkpoint: given.checkpoint === 'call' ? 'call' : 'step' };
}

async function scopeOf({ scope }: RecoverOptions, run: KeptRun): Promise<CallScope> {
  const given = (await scope?.(run)) ?? {};
  const { owner } = run.state;
  return given.owner === undefined && owner !== undefined ? { ...given, owner } : given;
}
