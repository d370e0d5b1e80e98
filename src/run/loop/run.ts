import type { Answer, CallScope } from '../../core/contract/call.js';
import type { SchemaSource } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import {
  CHECKPOINT_STORE,
  type CheckpointStore,
  type RunCheckpoint,
  type RunEntry,
  type StoredEnd,
} from '../../core/contract/run-checkpoint.js';
import type { RunState, RunStore, StoredCall } from '../../core/contract/run-state.js';
import type { InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { nextTurn, onAbort } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { RunIds } from '../call/effect-key.js';
import { type ChildRuns, childRuns } from './child-runs.js';
import { ClaimedRun, DEFAULT_LEASE_MS } from './claimed-run.js';
import { driveLoop } from './drive.js';
import { streamRun, type ToolLoopResult, type ToolLoopStream, type TypedResult } from './events.js';
import {
  addUsage,
  type Checkpointer,
  type LoopRun,
  NO_USAGE,
  type RunDeps,
  type RunStart,
  usageSince,
} from './loop-run.js';
import { type CallingMessage, openMessage, type ParsedCall } from './messages.js';
import {
  checkRun,
  type ResumeConfig,
  type ResumeOptions,
  readResume,
  type ToolLoopConfig,
} from './options.js';
import { askedAnew, resumeWith } from './resume.js';
import { errorJson, type StoredError, storeFailed, wrongConfig } from './run-errors.js';
import { jsonPart, progressOf, restoredRecord, stateVersion, storedCall } from './suspend.js';

/** A run starts, or continues from its suspended state or from the entries of a crashed process. */
type RunOrigin = 'new' | 'suspended' | 'lost';

/**
 * Appends entries to a stored run while it continues. Writes keep their order, and entries that arrive during a write
 * form the next one. After a write that finally failed, the run is lost: its signal is aborted, and nothing more is
 * written.
 */
class StepCheckpointer implements Checkpointer {
  /** Values of `context.once` are saved immediately, too. */
  readonly savesOnce: boolean;
  readonly #claimed: ClaimedRun;
  readonly #store: CheckpointStore;
  readonly #from: RunOrigin;
  #isUnderWay = false;
  /** The number of stored messages of the run. */
  #messages = 0;
  #queue: RunEntry[] = [];
  #last: Promise<void> = Promise.resolve();
  #soon: Promise<void> | undefined;
  #step = 0;
  #run: LoopRun | undefined;

  constructor(
    store: CheckpointStore,
    { claimed, from }: Pick<HeldRun, 'claimed' | 'from'>,
    savesOnce: boolean,
  ) {
    this.#claimed = claimed;
    this.#store = store;
    this.#from = from;
    this.savesOnce = savesOnce;
  }

  /** Whether the store has the run as running. */
  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** @throws ToolwrightError `RunClaimed` (517) if the id is already used, and `RunStoreFailed` (518). */
  async begin(run: LoopRun): Promise<void> {
    this.#messages = run.messages.length;
    this.#isUnderWay = this.#from === 'lost';
    if (this.#from !== 'new') return;
    const checkpoint = checkpointOf(run);
    const { claim, leaseMs } = this.#claimed;
    const lease = { ...claim, leaseMs };
    await this.#claimed.write(async () => {
      try {
        await this.#store.begin(lease, checkpoint);
        return true;
      } catch (error) {
        if (!ToolwrightError.is(error) || error.name !== 'RunClaimed') throw error;
        // An earlier attempt may have been written although it failed. Otherwise it is another run.
        if (await this.#store.renew(lease)) return true;
        this.#claimed.abandon(error);
        throw error;
      }
    });
    this.#claimed.hold();
    this.#isUnderWay = true;
  }

  open(run: LoopRun, message: CallingMessage, begins: readonly ParsedCall[]): Promise<void> {
    const { messages, iterations, usage, record } = run;
    const { calls } = message;
    this.#step = iterations;
    this.#run = run;
    for (const call of calls) {
      if (call.record !== undefined) call.savedAs = 'settled';
      else if (call.hasBegun || begins.includes(call)) call.savedAs = 'begun';
    }
    const open = openMessage(message, this.#stored);
    const saved = messages.length - 1;
    if (!this.#isUnderWay) {
      const checkpoint = { ...checkpointOf(run, saved), open, version: stateVersion({ ...record, open }) };
      const save = () => this.#claimed.write((claim) => this.#store.checkpoint(claim, checkpoint));
      this.#last = this.#last.then(save).catch(() => {});
      this.#isUnderWay = true;
    } else if (message.reply !== record?.open) {
      const added = messages.slice(this.#messages, saved);
      this.#queue.push({ type: 'step', messages: added, iterations, usage, ...run.budget?.progress, open });
    } else for (const call of begins) if (!call.hasBegun) this.#add(call);
    this.#messages = saved;
    return this.#commit();
  }

  start(call: ParsedCall): Promise<void> | undefined {
    if (call.savedAs !== undefined) return undefined;
    call.savedAs = 'begun';
    this.#add(call);
    return this.#commit();
  }

  save(call: ParsedCall): Promise<void> | undefined {
    if (call.savedAs === 'settled') return undefined;
    call.savedAs = 'settled';
    this.#add(call);
    this.#soon ??= nextTurn().then(() => {
      this.#soon = undefined;
      return this.#commit();
    });
    return this.#soon;
  }

  async saveOnce(
    { place, savedAs }: ParsedCall,
    done: Parameters<Checkpointer['saveOnce']>[1],
  ): Promise<void> {
    // Work that outlives its call may arrive here when other calls are open.
    if (place.step !== this.#step || savedAs === 'settled') return;
    this.#queue.push({ type: 'once', index: place.index, ...done });
    await this.#commit();
    this.#claimed.lost.throwIfAborted();
  }

  async end({ messages }: LoopRun, result: ToolLoopResult): Promise<ToolLoopResult> {
    await this.#last.catch(() => {});
    const { state, status, content, iterations, usage, spent, error } = result;
    try {
      if (state !== undefined) {
        // Queued entries are part of the state.
        this.#queue = [];
        await this.#claimed.write(
          (claim) => this.#store.release(claim, state),
          async () => (await this.#store.load(state.runId))?.revision === state.revision,
        );
      } else
        await this.#end(messages.slice(this.#messages), {
          ...withoutUndefined({ content, iterations, usage, spent, error: error && storedError(error) }),
          status: status === 'suspended' ? 'failed' : status,
        });
      return result;
    } catch (cause) {
      return { ...result, error: cause as Error, status: state === undefined ? status : 'failed' };
    } finally {
      this.#claimed.leave();
    }
  }

  async fail(error: unknown): Promise<void> {
    await this.#last.catch(() => {});
    const known = { iterations: this.#step, usage: NO_USAGE, error: storedError(error) };
    await this.#end([], { status: 'failed', content: '', ...known });
    this.#claimed.leave();
  }

  async #end(messages: LoopRun['messages'], end: StoredEnd): Promise<void> {
    const entries = [...this.#take(), { type: 'end', messages, ...end } as const];
    await this.#claimed.write(
      (claim) => this.#store.end(claim, entries),
      async () => (await this.#store.read(this.#claimed.claim.runId))?.status === 'ended',
    );
  }

  readonly #stored = (call: ParsedCall): StoredCall => {
    const { journal, inner, savedAs } = call;
    let stored = storedCall(call);
    // The store writes it as JSON immediately. Fields that JSON cannot represent are omitted.
    const plain = jsonPart(stored) as StoredCall | undefined;
    if (plain !== undefined) stored = plain;
    else if (stored.status === 'settled') {
      const { result, ...record } = stored.record;
      stored = { status: 'settled', record: { ...plainFields(record), result: plainFields(result) } };
    } else stored = { status: 'held', id: call.id, name: call.name, arguments: stored.arguments };
    if (stored.status !== 'held' || savedAs === 'settled') return stored;
    if (savedAs === undefined)
      return journal === undefined
        ? stored
        : withoutUndefined({ ...stored, status: 'waiting', waits: [], journal, inner });
    const { config, tools } = this.#run ?? {};
    const tool = tools?.offered(call.name);
    const isJob = Boolean((config?.engine ?? tools?.jobs) && tool?.background);
    const { readOnly } = tool?.annotations ?? call;
    // The answer that a call was not executed counts for one restart; then the question is asked again.
    let again = journal;
    if (journal?.outcome !== undefined) {
      const { outcome: _, ...known } = journal;
      again = { ...known, reruns: (known.reruns ?? 0) + 1 };
    }
    return withoutUndefined({
      ...stored,
      status: 'begun',
      journal: again,
      inner,
      asJob: isJob || undefined,
      readOnly: readOnly || undefined,
    });
  };

  #add(call: ParsedCall): void {
    const added = { index: call.place.index, call: this.#stored(call) };
    const last = this.#queue.at(-1);
    if (last?.type === 'calls') (last.calls as (typeof added)[]).push(added);
    else this.#queue.push({ type: 'calls', calls: [added] });
  }

  /** Resolves when all entries so far are committed, or the run is lost. */
  #commit(): Promise<void> {
    this.#last = this.#last.then(this.#append);
    return this.#last;
  }

  readonly #append = (): Promise<void> | undefined => {
    if (this.#queue.length === 0) return undefined;
    const entries = this.#take();
    return this.#claimed.write((claim) => this.#store.append(claim, entries)).catch(() => {});
  };

  #take(): RunEntry[] {
    const entries = this.#queue;
    this.#queue = [];
    return entries;
  }
}

/** The current state of a run; without its last message if that is open. */
function checkpointOf(run: LoopRun, messages = run.messages.length): RunCheckpoint {
  const { runId, record } = run;
  const progress = { ...progressOf(run), messages: run.messages.slice(0, messages) };
  const plain = plainJson({
    version: 3,
    status: 'running',
    runId,
    revision: record?.revision ?? 0,
    ...progress,
  });
  if (plain !== undefined) return plain as RunCheckpoint;
  throw new ToolwrightError(
    'RunStoreFailed',
    'The run cannot be saved: its history cannot be written as JSON.',
  );
}

function plainFields<Fields extends object>(fields: Fields): Fields {
  const plain = Object.entries(fields).map(([name, value]) => [name, plainJson(value)]);
  return withoutUndefined(Object.fromEntries(plain) as Fields);
}

/** For an abort, with the given reason, which is the cause of the error. */
function storedError(error: unknown): StoredError {
  const stored = errorJson(error);
  if (!ToolwrightError.is(error) || error.name !== 'RunAborted' || error.cause === undefined) return stored;
  return { ...stored, message: `${stored.message.replace(/\.$/, '')}: ${errorMessage(error.cause)}` };
}

/**
 * Runs the loop of model and tools until the model answers without calls.
 *
 * It returns and does not reject: failures of the model, a tool or the provider are in `status`, `error` and
 * `toolCalls`, and `messages` is always a valid history. The input array does not change.
 *
 * @throws InvalidOptionsError for invalid options, ToolDeclarationError for invalid tools, and `ToolLoopLimitReached`
 * with `onLimit: 'throw'`.
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
): Promise<TypedResult<Source>> {
  checkRun({ config, scope, messages });
  return (await driveRun(config, { messages }, { scope })) as TypedResult<Source>;
}

/**
 * Runs the loop and yields its events: text as the model writes it, and calls with their progress and their ends. A
 * slow reader slows the run. Leaving the iteration aborts the run, and `result` is then the aborted run with a valid
 * history. The run starts with the iteration, or when `result` is read; without an iteration, it does not wait for a
 * reader.
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
export function streamToolLoop<Source extends SchemaSource = SchemaSource>(
  config: ToolLoopConfig & { readonly output?: Source },
  messages: readonly Message[],
  scope: CallScope = {},
): ToolLoopStream<Source> {
  return streamRun<Source>(() => {
    checkRun({ config, scope, messages });
    return {
      signal: config.signal,
      drive: (signal, sink) => driveRun({ ...config, signal }, { messages }, { scope, sink }),
    };
  });
}

/**
 * Resumes a suspended run. Answers may come in any order, by the ids in `pending`; while answers are missing, the run
 * stays suspended and nothing runs. Then the waiting calls are executed, finished calls are not executed again, and
 * the loop continues. Tools are looked up by name and the scope is passed again, so that another process can resume
 * the run. An approval may contain other `arguments`: they are checked like a model's before anything runs, and
 * faults are reported as `InvalidAnswer`.
 *
 * The run keeps its model; of the given tools, those that it was offered before; and its owner, whose scope must be
 * passed. If another user answers for the owner, pass `{ scope, answeredBy }`.
 *
 * It returns and does not reject in the same cases as `runToolLoop`.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) for unknown, repeated and invalid answers, and `InvalidState` (515)
 * for a state that was changed, `RunNotAllowed` (523) for a scope of another owner. Nothing changes then, and the
 * state can be resumed again.
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
export async function resumeToolLoop<Source extends SchemaSource = SchemaSource>(
  config: ResumeConfig & { readonly output?: Source },
  state: RunState | undefined,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): Promise<TypedResult<Source>> {
  const read = readResume({ config, options });
  const record = await resumeWith(config, state, { ...read, answers });
  return (await driveRun(config, { record }, { scope: read.scope ?? {} })) as TypedResult<Source>;
}

/**
 * Resumes a suspended run as `resumeToolLoop` does, and yields its events as `streamToolLoop` does. Calls that waited
 * start again; finished calls are not reported a second time.
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
export function streamResumedToolLoop<Source extends SchemaSource = SchemaSource>(
  config: ResumeConfig & { readonly output?: Source },
  state: RunState | undefined,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): ToolLoopStream<Source> {
  return streamRun<Source>(() => {
    const read = readResume({ config, options });
    const resumed = resumeWith(config, state, { ...read, answers });
    return {
      signal: config.signal,
      drive: async (signal, sink) =>
        driveRun({ ...config, signal }, { record: await resumed }, { scope: read.scope ?? {}, sink }),
    };
  });
}

/** Drives a run that is new, or that the caller continues. Its steps are saved if the config requests it. */
export function driveRun(config: ResumeConfig, start: RunStart, deps: RunDeps): Promise<ToolLoopResult> {
  const isNew = 'messages' in start;
  if (savesSteps(config)) {
    if (!isNew) throw wrong('resumeToolLoop', 'resumeStoredRun(config, { store, runId }, answers)');
    const { leaseMs = DEFAULT_LEASE_MS, runId = crypto.randomUUID(), logger } = config;
    const claimed = new ClaimedRun({ store: checkpointStore(config.store), runId, leaseMs, logger });
    return driveClaimed({ ...config, runId }, () => start, { claimed, from: 'new', deps });
  }
  if (!isNew) return driveLoop(config, start, deps);
  const outer = childRuns.getStore();
  if (outer !== undefined) return driveChild(outer, config, { start, deps });
  const job = RunIds.ofJob.getStore();
  const isOfJob = job?.isOver === false && config.runId === undefined;
  return driveLoop(isOfJob ? { ...config, runId: job.nextOf(start.messages) } : config, start, deps);
}

interface ChildStart {
  readonly start: { readonly messages: readonly Message[] };
  readonly deps: RunDeps;
  /** Its usage counts for the run that encloses it. */
  readonly isCounted?: boolean;
}

/**
 * Drives a run that the tool of a call starts. If the call is executed again, an unfinished run continues, and a
 * finished run is not repeated. The enclosing state contains it: it is not saved to a store.
 */
export async function driveChild(
  outer: ChildRuns,
  config: ResumeConfig,
  { start, deps, isCounted }: ChildStart,
): Promise<ToolLoopResult> {
  const count = (result: ToolLoopResult, before = NO_USAGE): ToolLoopResult => {
    if (isCounted) addUsage(outer.run, usageSince(before, result.usage));
    return result;
  };
  const run = outer.begin();
  if (run === undefined) return count(await driveLoop(config, start, deps));
  const { state } = run;
  let known: ToolLoopResult | undefined;
  if (run.result !== undefined) {
    // It had ended in an earlier execution of the call.
    const { error, toolCalls, ...ended } = run.result;
    const failed = error && Object.assign(new Error(error.message), { name: error.name });
    const restored = { ...ended, toolCalls: toolCalls.map(restoredRecord), error: failed };
    known = withoutUndefined(restored) as ToolLoopResult;
  }
  // Also counted if it has an id, so that the next run keeps its id.
  const runId = config.runId ?? outer.idOf(start.messages);
  if (known !== undefined) return known;
  const resumption = { answers: [], scope: deps.scope, isCertain: true };
  const from = state === undefined ? start : { record: await resumeWith({}, state, resumption) };
  const result = await driveLoop({ ...config, runId }, from, { ...deps, save: () => {} });
  outer.end(run, result);
  return count(result, state?.usage);
}

/** Whether the steps of a run with this config are saved. */
export function savesSteps(config: ResumeConfig | undefined): boolean {
  return (config?.checkpoint ?? 'suspend') !== 'suspend';
}

/**
 * A store of running runs.
 *
 * @throws InvalidOptionsError (521) if it stores only suspended runs.
 */
export function checkpointStore(store: RunStore | undefined): CheckpointStore {
  if (CHECKPOINT_STORE.accepts(store)) return store as CheckpointStore;
  throw wrong('a store of suspended runs only', `store: ${CHECKPOINT_STORE.fix}`);
}

function wrong(what: string, fix: string): InvalidOptionsError {
  const problem = `checkpoint saves every step, which ${what} cannot`;
  return wrongConfig({ option: 'checkpoint', problem, fix });
}

/** A run that this process holds while it continues. */
interface HeldRun {
  readonly claimed: ClaimedRun;
  readonly store?: RunStore;
  readonly from: RunOrigin;
  readonly deps: RunDeps;
}

/**
 * Drives a claimed run to its end or its suspension. If its steps are saved, the store keeps the ended run; otherwise
 * the run is removed.
 *
 * @throws ToolwrightError `RunClaimed` (517) if another process has taken it over, `RunStoreFailed` (518), and errors
 * of `start`; the run is then free again, unchanged.
 */
export async function driveClaimed(
  config: ResumeConfig,
  start: () => RunStart | Promise<RunStart>,
  { claimed, store = config.store, from, deps }: HeldRun,
): Promise<ToolLoopResult> {
  const checkpointer = savesSteps(config)
    ? new StepCheckpointer(checkpointStore(store), { claimed, from }, config.checkpoint === 'call')
    : undefined;
  const signal = config.signal ? AbortSignal.any([config.signal, claimed.lost]) : claimed.lost;
  // An error at the limit would be thrown before the end is saved.
  const onLimit = config.onLimit === 'throw' ? 'return' : config.onLimit;
  const { left } = deps;
  const leave = () => {
    // The answers can be given again, as if this process had crashed.
    const message = `Run '${claimed.claim.runId}' remains suspended, and its answers were not saved: this application is shutting down. Resume it with the same answers when its lease has ended; calls that it has made since are then made again, with the same idempotency keys. With checkpoint: 'step', other processes continue it.`;
    claimed.abandon(checkpointer ? left?.reason : new ToolwrightError('RunClaimed', message));
  };
  const unfollow = left && onAbort(left, leave);
  let result: ToolLoopResult;
  try {
    const save = (state: RunState) => claimed.release(state);
    result = await driveLoop({ ...config, signal, onLimit }, await start(), { ...deps, checkpointer, save });
  } catch (error) {
    claimed.lost.throwIfAborted();
    if (checkpointer?.isUnderWay) await checkpointer.fail(error);
    // A lost run that cannot continue here is not released: it would be taken over again immediately.
    else if (from === 'suspended') await claimed.giveBack(askedAnew(error, config.stateSecret));
    claimed.leave();
    throw error;
  } finally {
    unfollow?.();
  }
  claimed.lost.throwIfAborted();
  if (checkpointer === undefined && result.state === undefined)
    try {
      await claimed.remove();
    } catch (cause) {
      claimed.lost.throwIfAborted();
      const what = `The run has ended (${result.status}), but the store could not remove it`;
      result = { ...result, error: storeFailed(what, cause) };
    }
  if (config.onLimit === 'throw' && result.status === 'limit') throw result.error;
  return result;
}
