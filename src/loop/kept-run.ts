import type { Usage } from '../contract/llm-provider.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../contract/run-checkpoint.js';
import type { RunStore } from '../contract/run-state.js';
import { InvalidOptionsError } from '../errors/author-fault.js';
import { onAbort } from '../kernel/async.js';
import { ClaimedRun, DEFAULT_LEASE_MS } from './claimed-run.js';
import { driveLoop } from './drive.js';
import type { ToolLoopResult } from './events.js';
import { type InnerRuns, innerRuns, restoredRun } from './inner-runs.js';
import { NO_USAGE, type RunStart, type RunSurroundings } from './loop-run.js';
import type { ResumeConfig } from './options.js';
import { resumeWith } from './resume.js';
import { StepKeeper } from './step-keeper.js';

/** Drives a run that begins, or goes on in the caller's hands. Its steps are kept where the config says so. */
export async function driveRun(
  config: ResumeConfig,
  start: RunStart,
  surroundings: RunSurroundings,
): Promise<ToolLoopResult> {
  if (!keepsSteps(config)) {
    const outer = 'messages' in start ? innerRuns.getStore() : undefined;
    if (outer === undefined) return driveLoop(config, start, surroundings);
    return (await driveInner(outer, config, { start, surroundings })).result;
  }
  if ('suspended' in start)
    throw wrong('resumeToolLoop', 'resumeStoredRun(config, { store, runId }, answers)');
  const { leaseMs = DEFAULT_LEASE_MS, runId = crypto.randomUUID() } = config;
  const claimed = new ClaimedRun({ store: checkpointStore(config.store), runId, leaseMs });
  return driveClaimed({ ...config, runId }, () => start, { claimed, first: 'begin', surroundings });
}

/** A run inside a call, and its surroundings. */
interface InnerDrive {
  readonly start: RunStart;
  readonly surroundings: RunSurroundings;
}

/** What came of a run inside a call, and what it had used before this call was made. */
interface InnerOutcome {
  readonly result: ToolLoopResult;
  readonly before: Usage;
}

/**
 * Drives a run that the tool of a call begins. Of a call that is made again, it goes on where it was; what had ended is
 * not done again. The state around it keeps it: no store of its own does.
 */
export async function driveInner(
  outer: InnerRuns,
  config: ResumeConfig,
  { start, surroundings }: InnerDrive,
): Promise<InnerOutcome> {
  const run = outer.begin();
  if (run === undefined) return { result: await driveLoop(config, start, surroundings), before: NO_USAGE };
  const { state, result: known } = run;
  if (known !== undefined) return { result: restoredRun(known), before: known.usage };
  const { scope } = surroundings;
  const resumed = state && (await resumeWith({}, state, { answers: [], scope, isCertain: true }));
  const result = await driveLoop(config, resumed ?? start, { ...surroundings, keep: { save: () => {} } });
  outer.end(run, result);
  return { result, before: state?.usage ?? NO_USAGE };
}

/** Whether a config says that the steps of its run are kept. */
export function keepsSteps(config: ResumeConfig | undefined): boolean {
  const { checkpoint = 'suspend' } = config ?? {};
  return checkpoint !== 'suspend';
}

/**
 * A store as one of runs under way.
 *
 * @throws InvalidOptionsError (521) where it keeps suspended runs only.
 */
export function checkpointStore(store: RunStore | undefined): CheckpointStore {
  if (CHECKPOINT_STORE.accepts(store)) return store as CheckpointStore;
  throw wrong('a store that keeps no runs under way', `store: ${CHECKPOINT_STORE.fix}`);
}

function wrong(what: string, fix: string): InvalidOptionsError {
  const problem = `checkpoint keeps every step, which ${what} cannot`;
  return new InvalidOptionsError([{ where: 'the loop’s config', option: 'checkpoint', problem, fix }]);
}

/** A run that is to be held while it goes on. */
interface HeldRun {
  readonly claimed: ClaimedRun<CheckpointStore>;
  readonly first: 'begin' | 'checkpoint' | 'nothing';
  readonly surroundings: Omit<RunSurroundings, 'keep' | 'keeper'>;
}

/**
 * Drives a run whose steps are kept, from where it begins to its end or its suspension.
 *
 * @throws ToolwrightError `RunClaimed` (517) where somebody else has taken it over, `RunStoreFailed` (518), and
 *   what `start` throws, and then the run is free again, as it was.
 */
export async function driveClaimed(
  config: ResumeConfig,
  start: () => RunStart | Promise<RunStart>,
  { claimed, first, surroundings }: HeldRun,
): Promise<ToolLoopResult> {
  const keeper = new StepKeeper({ claimed, first, keepsOnce: config.checkpoint === 'call' });
  const signal = config.signal ? AbortSignal.any([config.signal, claimed.lost]) : claimed.lost;
  // A throw at the limit would come before the end is kept.
  const onLimit = config.onLimit === 'throw' ? 'return' : config.onLimit;
  const { left } = surroundings;
  const unfollow = left === undefined ? () => {} : onAbort(left, () => claimed.abandon(left.reason));
  let result: ToolLoopResult;
  try {
    result = await driveLoop({ ...config, signal, onLimit }, await start(), { ...surroundings, keeper });
  } catch (error) {
    claimed.lost.throwIfAborted();
    if (keeper.isUnderWay) await keeper.fail(error);
    // A lost run that cannot go on here is not given back: it would be taken over at once again.
    else if (first === 'checkpoint') await claimed.giveBack();
    claimed.leave();
    throw error;
  } finally {
    unfollow();
  }
  claimed.lost.throwIfAborted();
  if (config.onLimit === 'throw' && result.status === 'limit') throw result.error;
  return result;
}
