import type { CallScope } from '../../core/contract/call.js';
import { CHECKPOINT_STORE, type CheckpointStore, type KeptRun } from '../../core/contract/run-checkpoint.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { callListener } from '../../core/kernel/async.js';
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
} from '../../core/kernel/options.js';
import type { OnUnknown } from '../call/invocation.js';
import { isExpired } from '../call/waits.js';
import { ClaimedRun, DEFAULT_LEASE_MS, LEASE, type SeizedRun, seizeRun } from './claimed-run.js';
import type { ToolLoopResult } from './events.js';
import type { RunDeps } from './loop-run.js';
import { type ResumeConfig, readResume } from './options.js';
import { checkOwner } from './run-owner.js';
import { driveSeizedRun } from './stored-run.js';

/** What became of a run that was taken over. */
export type RecoveredRun =
  /** It has ended, or is suspended. */
  | { readonly runId: string; readonly result: ToolLoopResult }
  /** It could not go on here, or another process has taken it over; it is recovered again when the lease has ended. */
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

/** Suspended runs that one call looks at. */
const MOST_EXPIRED = 1_000;

/** The same; when `left` is aborted, what goes on here is left as it stands, to other processes. */
export async function recoverAll(
  options: RecoverOptions,
  left: AbortSignal | undefined,
): Promise<readonly RecoveredRun[]> {
  checkOptions(options, RECOVER_OPTIONS);
  const { store, maxConcurrency = 4, signal, onResult } = options;
  const recovered: RecoveredRun[] = [];
  /** Recovers the runs that `next` gives, until it gives none. */
  const recoverEach = (next: () => Promise<SeizedRun | 'none' | 'skip'>): Promise<unknown> => {
    const work = async (): Promise<void> => {
      while (!signal?.aborted) {
        const seized = await next();
        if (seized === 'none') return;
        if (seized === 'skip') continue;
        const outcome = await recover(options, seized, left);
        recovered.push(outcome);
        callListener(
          () => onResult?.(outcome),
          () => {},
        );
      }
    };
    return Promise.all(Array.from({ length: maxConcurrency }, work));
  };
  await recoverEach(() => claimLost(options));
  const expired = [...((await store.expiredRuns?.({ of: 'others', limit: MOST_EXPIRED })) ?? [])];
  await recoverEach(async () => {
    const next = expired.shift();
    return next === undefined ? 'none' : seizeExpired(options, next.runId);
  });
  return recovered;
}

async function claimLost({ store, leaseMs = DEFAULT_LEASE_MS }: RecoverOptions): Promise<SeizedRun | 'none'> {
  const claim = crypto.randomUUID();
  const since = performance.now();
  const taken = await store.claimLost({ claim, leaseMs });
  if (taken.status !== 'claimed') return 'none';
  const { run } = taken;
  const claimed = new ClaimedRun({ store, runId: run.runId, leaseMs }, claim);
  claimed.hold(since);
  return { run, claimed };
}

/** A suspended run whose deadline has passed by this clock, too, and that has not been claimed meanwhile. */
async function seizeExpired(
  { store, leaseMs = DEFAULT_LEASE_MS }: RecoverOptions,
  runId: string,
): Promise<SeizedRun | 'skip'> {
  const state = await store.load(runId);
  if (!state?.pending.some((wait) => isExpired(wait))) return 'skip';
  try {
    const seized = await seizeRun({ store, runId, leaseMs, from: 'nobody' });
    if (seized.run.status === 'suspended') return seized;
    await seized.claimed.giveBack();
  } catch (error) {
    if (!ToolwrightError.is(error) || !['RunNotFound', 'RunClaimed'].includes(error.name)) throw error;
  }
  return 'skip';
}

async function recover(
  options: RecoverOptions,
  seized: SeizedRun,
  left: AbortSignal | undefined,
): Promise<RecoveredRun> {
  const { run, claimed } = seized;
  const { runId, state } = run;
  const { store, onUnknown } = options;
  try {
    const given = typeof options.config === 'function' ? await options.config(run) : options.config;
    const config: ResumeConfig = { ...given, checkpoint: given.checkpoint === 'call' ? 'call' : 'step' };
    const own = (await options.scope?.(run)) ?? {};
    const isOwned = own.owner === undefined && state.owner !== undefined;
    const scope = isOwned ? { ...own, owner: state.owner } : own;
    readResume({ config, options: { scope } });
    checkOwner({ owner: state.owner, isCertain: true }, scope);
    const deps = { scope, ...(onUnknown && { onUnknown }), ...(left && { left }) };
    return { runId, result: await driveSeizedRun(config, seized, { store, deps }) };
  } catch (error) {
    // Freed at once, a lost run would be taken over at once again; a suspended one may still be answered.
    if (run.status === 'suspended') await claimed.giveBack();
    else claimed.leave();
    return { runId, error };
  }
}

/** A lost run that is to go on here if it has no holder, and who watches it. */
interface LostRunOptions {
  readonly store: CheckpointStore;
  readonly runId: string;
  readonly leaseMs: number;
  readonly deps: Pick<RunDeps, 'scope' | 'sink' | 'onUnknown' | 'left'>;
  /** Sees the run before it goes on, when no other process can change it any more. */
  readonly onTaken: (run: KeptRun) => Promise<void>;
}

/**
 * Goes on with one lost run, as {@link recoverRuns} does; `undefined` if it has ended or was suspended meanwhile.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517) if another process holds it.
 */
export async function driveLostRun(
  config: ResumeConfig,
  { store, runId, leaseMs, deps, onTaken }: LostRunOptions,
): Promise<ToolLoopResult | undefined> {
  const seized = await seizeRun({ store, runId, leaseMs, from: 'nobody' });
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
  return driveSeizedRun(config, seized, { store, deps });
}
