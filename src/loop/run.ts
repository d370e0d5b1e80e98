import { RunIds } from '../call/effect-key.js';
import type { Answer, CallScope } from '../contract/call.js';
import type { SchemaSource, ValueOf } from '../contract/json-schema.js';
import type { Message, Usage } from '../contract/llm-provider.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../contract/run-checkpoint.js';
import type { RunState, RunStore } from '../contract/run-state.js';
import { InvalidOptionsError } from '../errors/author-fault.js';
import { onAbort } from '../kernel/async.js';
import { ClaimedRun, DEFAULT_LEASE_MS } from './claimed-run.js';
import { driveLoop } from './drive.js';
import { streamRun, type ToolLoopResult, type ToolLoopStream } from './events.js';
import { type InnerRuns, innerRuns } from './inner-runs.js';
import { NO_USAGE, type RunStart, type RunSurroundings } from './loop-run.js';
import {
  checkRun,
  type ResumeConfig,
  type ResumeOptions,
  readResume,
  type ToolLoopConfig,
} from './options.js';
import { askedAnew, resumeWith } from './resume.js';
import { StepKeeper } from './step-keeper.js';

/**
 * Runs the loop of model and tools until the model answers without calls.
 *
 * It returns and does not reject: what the model, a tool or the provider did wrong is in `status`, `error`
 * and `toolCalls`, and `messages` is a valid history on every path. The input array is not changed.
 *
 * @throws InvalidOptionsError for options that are none, ToolDeclarationError for tools that are none, and `ToolLoopLimitReached` with `onLimit: 'throw'`.
 *
 * @example
 * ```ts
 * const run = await runToolLoop(
 *   { provider, model: 'gpt-5', tools },
 *   [{ role: 'user', content: 'Which orders are open?' }],
 *   { data: { userId: 'u1' } },
 * );
 * console.log(run.status, run.content);
 * ```
 */
export async function runToolLoop<Source extends SchemaSource = SchemaSource>(
  config: ToolLoopConfig & { readonly output?: Source },
  messages: readonly Message[],
  scope: CallScope = {},
): Promise<ToolLoopResult & { readonly output?: ValueOf<Source> }> {
  checkRun({ config, scope, messages });
  const result = await driveRun(config, { messages }, { scope });
  return result as ToolLoopResult & { readonly output?: ValueOf<Source> };
}

/**
 * Runs the loop and yields what happens as it happens: text as the model writes it, calls with their
 * progress and their ends. A slow reader slows the run; leaving the iteration aborts it, and `result` is
 * then the aborted run with a valid history. The run begins with the iteration, or when `result` is asked
 * for; without an iteration nothing waits for a reader.
 *
 * @example
 * ```ts
 * const run = streamToolLoop({ provider, model: 'gpt-5', tools }, messages);
 * for await (const event of run) {
 *   if (event.type === 'text-delta') process.stdout.write(event.text);
 * }
 * const { status, usage } = await run.result;
 * ```
 */
export function streamToolLoop(
  config: ToolLoopConfig,
  messages: readonly Message[],
  scope: CallScope = {},
): ToolLoopStream {
  return streamRun(() => {
    checkRun({ config, scope, messages });
    return {
      signal: config.signal,
      drive: (signal, sink) => driveRun({ ...config, signal }, { messages }, { scope, sink }),
    };
  });
}

/**
 * Goes on with a suspended run. Answers come in any order, by the ids of `pending`; as long as
 * some are missing, the run stays suspended and nothing runs. Then the calls that waited are made, those that
 * had run are not made again, and the loop goes on. Tools are looked up anew by name, and the scope is given
 * again, so that another process can do this. A yes may come with other `arguments`: they are checked like a
 * model's before anything runs, and what is wrong with them is `InvalidAnswer`.
 *
 * The run keeps what it had: its model; of the given tools, those that it was offered before; and its owner, whose
 * scope must be given. Whoever answers for the owner is named apart: `{ scope, answeredBy }`.
 *
 * It returns and does not reject for the same things as `runToolLoop`.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) for unknown, repeated and unfitting answers, and `InvalidState`
 *   (515) for a state that was changed, `RunNotAllowed` (523) for a scope of another owner; all of them change
 *   nothing, and the state can be resumed again.
 *
 * @example
 * ```ts
 * const run = await runToolLoop(config, messages, { data: { userId: 'u1' } });
 * if (run.status === 'suspended') {
 *   const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
 *   const resumed = await resumeToolLoop(config, run.state, answers, { data: { userId: 'u1' } });
 *   console.log(resumed.content);
 * }
 * ```
 */
export async function resumeToolLoop(
  config: ResumeConfig,
  state: RunState | undefined,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): Promise<ToolLoopResult> {
  const read = readResume({ config, options });
  const start = await resumeWith(config, state, { ...read, answers });
  return driveRun(config, start, { scope: read.scope ?? {} });
}

/**
 * Goes on with a suspended run as `resumeToolLoop` does, and yields what happens as `streamToolLoop` does.
 * Calls that waited start again; those that had run are not told of a second time.
 *
 * Wrong answers and changed states reject the first read and `result`, with the same errors as there.
 *
 * @example
 * ```ts
 * for await (const event of streamResumedToolLoop(config, state, [{ id: 'approval_…', approved: true }])) {
 *   if (event.type === 'text-delta') process.stdout.write(event.text);
 * }
 * ```
 */
export function streamResumedToolLoop(
  config: ResumeConfig,
  state: RunState | undefined,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): ToolLoopStream {
  return streamRun(() => {
    const read = readResume({ config, options });
    const start = resumeWith(config, state, { ...read, answers });
    return {
      signal: config.signal,
      drive: async (signal, sink) =>
        driveRun({ ...config, signal }, await start, { scope: read.scope ?? {}, sink }),
    };
  });
}

/** Drives a run that begins, or goes on in the caller's hands. Its steps are kept where the config says so. */
export async function driveRun(
  config: ResumeConfig,
  start: RunStart,
  surroundings: RunSurroundings,
): Promise<ToolLoopResult> {
  if (!keepsSteps(config)) {
    if (!('messages' in start)) return driveLoop(config, start, surroundings);
    const outer = innerRuns.getStore();
    const job = outer === undefined ? RunIds.ofJob.getStore() : undefined;
    if (job?.isOver === false && config.runId === undefined)
      return driveLoop({ ...config, runId: job.nextOf(start.messages) }, start, surroundings);
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
  const { state } = run;
  const known = outer.endOf(run);
  // Counted also where it has one, so that the next has that which it had.
  const runId = config.runId ?? ('messages' in start ? outer.idOf(start.messages) : undefined);
  if (known !== undefined) return { result: known, before: known.usage };
  const { scope } = surroundings;
  const resumed = state && (await resumeWith({}, state, { answers: [], scope, isCertain: true }));
  const result = await driveLoop({ ...config, runId }, resumed ?? start, {
    ...surroundings,
    keep: { save: () => {} },
  });
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
    else if (first === 'checkpoint') await claimed.giveBack(askedAnew(error, config.stateSecret));
    claimed.leave();
    throw error;
  } finally {
    unfollow();
  }
  claimed.lost.throwIfAborted();
  if (config.onLimit === 'throw' && result.status === 'limit') throw result.error;
  return result;
}
