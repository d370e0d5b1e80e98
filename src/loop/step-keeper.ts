import type { CallJournal } from '../contract/call.js';
import type { CheckpointStore, RunCheckpoint, RunEntry, StoredEnd } from '../contract/run-checkpoint.js';
import type { RunState, StoredCall } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { nextTurn } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { plainJson } from '../kernel/json.js';
import type { ClaimedRun } from './claimed-run.js';
import type { ToolLoopResult } from './events.js';
import type { LoopRun, RunKeeper } from './loop-run.js';
import { type CallingMessage, type CallOutcome, openMessage, type ParsedCall } from './messages.js';
import { progressOf, storedCall, versionOf } from './suspend.js';

/** What a keeper writes first of the run: that it begins, that it goes on from its suspension, or nothing. */
type FirstWrite = 'begin' | 'checkpoint' | 'nothing';

/** How a run is kept. */
interface KeeperOptions {
  readonly claimed: ClaimedRun<CheckpointStore>;
  readonly first: FirstWrite;
  /** Values of `context.once` are kept at once, too. */
  readonly keepsOnce: boolean;
}

/**
 * Writes down what a run does while it does it. Writes come in order, and what is told while one is under way makes the
 * next one. Once a write was in vain, the run is lost: its signal is aborted, and nothing more is written.
 */
export class StepKeeper implements RunKeeper {
  readonly keepsOnce: boolean;
  readonly #claimed: ClaimedRun<CheckpointStore>;
  #first: FirstWrite | 'done';
  /** So many messages of the run are kept. */
  #messages = 0;
  /** The calls of the open message that are begun, and those whose outcome was handed over. */
  #begun = new Set<number>();
  #told = new Set<number>();
  #queue: RunEntry[] = [];
  #last: Promise<void> = Promise.resolve();
  #soon: Promise<void> | undefined;
  #step = 0;
  #run: LoopRun | undefined;

  constructor({ claimed, first, keepsOnce }: KeeperOptions) {
    this.#claimed = claimed;
    this.#first = first;
    this.keepsOnce = keepsOnce;
  }

  /** Whether the store has the run as one under way. */
  get isUnderWay(): boolean {
    return this.#first === 'done';
  }

  /** @throws ToolwrightError `RunClaimed` (517) where the id is taken, and `RunStoreFailed` (518). */
  async begin(run: LoopRun): Promise<void> {
    this.#messages = run.messages.length;
    if (this.#first === 'nothing') this.#first = 'done';
    if (this.#first !== 'begin') return;
    const checkpoint = checkpointOf(run);
    const lease = { ...this.#claimed.claim, leaseMs: this.#claimed.leaseMs };
    const since = performance.now();
    const write = async (store: CheckpointStore): Promise<boolean> => {
      try {
        await store.begin(lease, checkpoint);
        return true;
      } catch (error) {
        if (!ToolwrightError.is(error) || error.name !== 'RunClaimed') throw error;
        // A write before this one may have been done all the same. Otherwise the run is another one.
        if (await store.renew(lease)) return true;
        this.#claimed.abandon(error);
        throw error;
      }
    };
    await this.#claimed.write({ write });
    this.#claimed.hold(since);
    this.#first = 'done';
  }

  async open(run: LoopRun, message: CallingMessage, begins: ReadonlySet<number>): Promise<void> {
    const { messages, iterations, usage, resumed } = run;
    const begun = new Set(message.calls.flatMap((call, index) => (call.hasBegun ? [index] : [])));
    this.#step = iterations;
    this.#run = run;
    this.#told = new Set(message.calls.flatMap((call, index) => (call.record ? [index] : [])));
    this.#begun = new Set([...begun, ...begins]);
    const open = openMessage(message, (call, index) => this.#unansweredCall(call, index));
    const kept = messages.length - 1;
    if (this.#first === 'checkpoint')
      await this.#resume({ ...checkpointOf(run, kept), open, version: versionOf(open) });
    else if (message.reply !== resumed?.open) {
      const added = messages.slice(this.#messages, kept);
      this.#queue.push({ type: 'step', messages: added, iterations, usage, ...run.budget?.progress, open });
    } else
      for (const index of begins) if (!begun.has(index)) this.#tell(index, open.calls[index] as StoredCall);
    this.#messages = kept;
    await this.#commit();
  }

  async start(call: ParsedCall): Promise<void> {
    const { index } = call.place;
    if (this.#begun.has(index)) return;
    this.#begun.add(index);
    this.#tell(index, this.#unansweredCall(call, index));
    await this.#commit();
  }

  async keep(call: ParsedCall, outcome: CallOutcome): Promise<void> {
    const { index } = call.place;
    if (this.#told.has(index)) return;
    this.#told.add(index);
    this.#tell(index, keptCall(outcome, call));
    this.#soon ??= nextTurn().then(() => {
      this.#soon = undefined;
      return this.#commit();
    });
    await this.#soon;
  }

  async keepOnce({ place }: ParsedCall, done: Parameters<RunKeeper['keepOnce']>[1]): Promise<void> {
    // Work that outlives its call may come to this when other calls are open.
    if (place.step !== this.#step || this.#told.has(place.index)) return;
    this.#queue.push({ type: 'once', index: place.index, ...done });
    await this.#commit();
    this.#claimed.lost.throwIfAborted();
  }

  async end(run: LoopRun, result: ToolLoopResult): Promise<ToolLoopResult> {
    await this.#last.catch(() => {});
    const { state } = result;
    try {
      if (state === undefined) await this.#end(run, result);
      else await this.#suspend(state);
      this.#claimed.leave();
      return result;
    } catch (cause) {
      this.#claimed.leave();
      const told = state === undefined ? 'end' : 'suspended state';
      const message = `The ${told} of the run could not be kept: ${errorMessage(cause)}`;
      const error = new ToolwrightError('RunStoreFailed', message, { cause });
      return state === undefined ? { ...result, error } : { ...result, status: 'failed', error };
    }
  }

  /** Ends a run that threw. */
  async fail(error: unknown): Promise<void> {
    await this.#last.catch(() => {});
    const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
    const end: StoredEnd = {
      status: 'failed',
      content: '',
      iterations: this.#step,
      usage,
      error: told(error),
    };
    await this.#write((store, claim) =>
      store.end(claim, [...this.#rest(), { type: 'end', messages: [], ...end }]),
    );
    this.#claimed.leave();
  }

  async #end({ messages }: LoopRun, result: ToolLoopResult): Promise<void> {
    const { status, content, iterations, usage, spent, error } = result;
    const end: RunEntry = {
      type: 'end',
      messages: messages.slice(this.#messages),
      status: status === 'suspended' ? 'failed' : status,
      content,
      iterations,
      usage,
      ...(spent === undefined ? {} : { spent }),
      ...(error === undefined ? {} : { error: told(error) }),
    };
    const entries = [...this.#rest(), end];
    await this.#claimed.write({
      write: (store, claim) => store.end(claim, entries),
      wasDone: async (store) => (await store.read(this.#claimed.claim.runId))?.status === 'ended',
    });
  }

  async #suspend(state: RunState): Promise<void> {
    // All of it is in the state.
    this.#queue = [];
    const { runId, revision } = state;
    await this.#claimed.write({
      write: (store, claim) => store.release(claim, state),
      wasDone: async (store) => (await store.load(runId))?.revision === revision,
    });
  }

  async #resume(checkpoint: RunCheckpoint): Promise<void> {
    await this.#write((store, claim) => store.checkpoint(claim, checkpoint)).catch(() => {});
    this.#first = 'done';
  }

  /** A call that has no outcome yet, as of now. */
  #unansweredCall(call: ParsedCall, index: number): StoredCall {
    const outcome: CallOutcome = call.record ?? { call, suspension: call.suspension, inner: call.inner };
    const stored = keptCall(outcome, call);
    if (stored.status !== 'held') return stored;
    const { journal, inner } = call;
    const runs = inner === undefined ? {} : { inner };
    if (!this.#begun.has(index))
      return journal === undefined ? stored : { ...stored, status: 'waiting', waits: [], journal, ...runs };
    const known = journal === undefined ? {} : { journal: ofRerun(journal) };
    const isJob = this.#run !== undefined && startsJob(this.#run, call);
    const { readOnly } = this.#run?.tools.offered(call.name)?.annotations ?? call;
    const marks = { ...(isJob ? { asJob: true as const } : {}), ...(readOnly ? { readOnly } : {}) };
    return { ...stored, status: 'begun', ...known, ...runs, ...marks };
  }

  #tell(index: number, call: StoredCall): void {
    const last = this.#queue.at(-1);
    if (last?.type === 'calls') (last.calls as { index: number; call: StoredCall }[]).push({ index, call });
    else this.#queue.push({ type: 'calls', calls: [{ index, call }] });
  }

  /** All that was told so far is committed, or the run is lost. */
  #commit(): Promise<void> {
    this.#last = this.#last.then(async () => {
      if (this.#queue.length === 0) return;
      const entries = this.#rest();
      await this.#write((store, claim) => store.append(claim, entries)).catch(() => {});
    });
    return this.#last;
  }

  #rest(): RunEntry[] {
    const entries = this.#queue;
    this.#queue = [];
    return entries;
  }

  #write(write: Parameters<ClaimedRun<CheckpointStore>['write']>[0]['write']): Promise<void> {
    return this.#claimed.write({ write });
  }
}

/** That a call was not done counts for one more beginning; should nobody know again, somebody is asked anew. */
function ofRerun({ outcome, ...known }: CallJournal): CallJournal {
  return outcome === undefined ? known : { ...known, reruns: (known.reruns ?? 0) + 1 };
}

/** A run as of now; without its last message where that is open. */
function checkpointOf(run: LoopRun, messages = run.messages.length): RunCheckpoint {
  const { runId, resumed } = run;
  const progress = { ...progressOf(run), messages: run.messages.slice(0, messages) };
  const checkpoint = { version: 3, status: 'running', runId, revision: resumed?.revision ?? 0, ...progress };
  const plain = plainJson(checkpoint);
  if (plain !== undefined) return plain as RunCheckpoint;
  throw new ToolwrightError('RunStoreFailed', 'The run cannot be kept: JSON cannot say its history.');
}

/** What came of a call, in any case as JSON: fields that cannot be said are left out, and the others are not. */
function keptCall(outcome: CallOutcome, call: ParsedCall): StoredCall {
  const kept = storedCall(outcome, call);
  const stored = plainJson(kept);
  if (stored !== undefined) return stored as StoredCall;
  const { id, name } = call;
  if (kept.status !== 'settled') return { status: 'held', id, name, arguments: kept.arguments };
  const { result, ...record } = kept.record;
  return { status: 'settled', record: { ...sayable(record), result: sayable(result) } };
}

function startsJob({ config, tools }: LoopRun, { name }: ParsedCall): boolean {
  const hasEngine = config.engine !== undefined || tools.hasEngine;
  return hasEngine && Boolean(tools.offered(name)?.background);
}

/** Those fields of an object that JSON can say. */
function sayable<Fields extends object>(fields: Fields): Fields {
  const plain = Object.entries(fields).map(([name, value]) => [name, plainJson(value)] as const);
  return Object.fromEntries(plain.filter(([, value]) => value !== undefined)) as Fields;
}

function told(error: unknown): NonNullable<StoredEnd['error']> {
  const { name = 'Error', code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
  const known = { name: String(name), message: abortReason(error) ?? errorMessage(error) };
  return typeof code === 'number' ? { ...known, code } : known;
}

/** Why somebody ended the run, which is in the cause of the error, and that is not kept. */
function abortReason(error: unknown): string | undefined {
  if (!ToolwrightError.is(error) || error.name !== 'RunAborted' || error.cause === undefined)
    return undefined;
  return `${errorMessage(error).replace(/\.$/, '')}: ${errorMessage(error.cause)}`;
}
