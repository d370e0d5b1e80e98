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
import { missingScopes } from '../call/required-scopes.js';
import { registryOf } from '../call/tool-registry.js';
import { isExpired } from '../call/waits.js';
import {
  ClaimedRun,
  type ClaimRequest,
  DEFAULT_LEASE_MS,
  LEASE,
  type SeizedRun,
  seizeRun,
} from './claimed-run.js';
import type { ToolLoopResult } from './events.js';
import type { RunDeps } from './loop-run.js';
import { type ResumeConfig, readResume } from './options.js';
import { checkOwner } from './run-owner.js';
import { driveSeizedRun } from './stored-run.js';

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
  /** Returns the scope of each run, with its stored owner. */
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
export async function recoverAll(
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
    const config: ResumeConfig = { ...given, checkpoint: given.checkpoint === 'call' ? 'call' : 'step' };
    const own = (await options.scope?.(run)) ?? {};
    const isOwned = own.owner === undefined && state.owner !== undefined;
    const scope = isOwned ? { ...own, owner: state.owner } : own;
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
