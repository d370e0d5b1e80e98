import type { CallJournal } from '../contract/call.js';
import type { CheckpointStore, RunCheckpoint, RunEntry, StoredEnd } from '../contract/run-checkpoint.js';
import type { RunState, StoredCall } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { nextTurn } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { isPlainData, plainJson } from '../kernel/json.js';
import type { ClaimedRun } from './claimed-run.js';
import type { ToolLoopResult } from './events.js';
import { type Checkpointer, type LoopRun, NO_USAGE } from './loop-run.js';
import { type CallingMessage, type CallOutcome, openMessage, type ParsedCall } from './messages.js';
import { progressOf, storedCall, versionOf } from './suspend.js';

/** A run begins, goes on from its suspended state, or from the entries of a process that died. */
export type RunOrigin = 'new' | 'suspended' | 'lost';

interface CheckpointerOptions {
  readonly claimed: ClaimedRun;
  readonly store: CheckpointStore;
  readonly from: RunOrigin;
  /** Values of `context.once` are saved at once, too. */
  readonly savesOnce: boolean;
}

/**
 * Appends entries to a stored run while it goes on. Writes keep their order, and entries that come during a write make
 * up the next one. After a write that failed for good the run is lost: its signal is aborted, and nothing more is written.
 */
export class StepCheckpointer implements Checkpointer {
  readonly savesOnce: boolean;
  readonly #claimed: ClaimedRun;
  readonly #store: CheckpointStore;
  readonly #from: RunOrigin;
  #isUnderWay = false;
  /** How many messages of the run are stored. */
  #messages = 0;
  /** Calls of the open message that have begun, and those whose outcome is in the queue or stored. */
  #begun = new Set<number>();
  #settled = new Set<number>();
  #queue: RunEntry[] = [];
  #last: Promise<void> = Promise.resolve();
  #soon: Promise<void> | undefined;
  #step = 0;
  #run: LoopRun | undefined;

  constructor({ claimed, store, from, savesOnce }: CheckpointerOptions) {
    this.#claimed = claimed;
    this.#store = store;
    this.#from = from;
    this.savesOnce = savesOnce;
  }

  /** Whether the store has the run as one under way. */
  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** @throws ToolwrightError `RunClaimed` (517) if the id is taken, and `RunStoreFailed` (518). */
  async begin(run: LoopRun): Promise<void> {
    this.#messages = run.messages.length;
    this.#isUnderWay = this.#from === 'lost';
    if (this.#from !== 'new') return;
    const checkpoint = checkpointOf(run);
    const { claim, leaseMs } = this.#claimed;
    const lease = { ...claim, leaseMs };
    const since = performance.now();
    await this.#write(async () => {
      try {
        await this.#store.begin(lease, checkpoint);
        return true;
      } catch (error) {
        if (!ToolwrightError.is(error) || error.name !== 'RunClaimed') throw error;
        // An earlier try may have been written although it failed. Otherwise the run is another one.
        if (await this.#store.renew(lease)) return true;
        this.#claimed.abandon(error);
        throw error;
      }
    });
    this.#claimed.hold(since);
    this.#isUnderWay = true;
  }

  async open(run: LoopRun, message: CallingMessage, begins: ReadonlySet<number>): Promise<void> {
    const { messages, iterations, usage, record } = run;
    const { calls } = message;
    const begun = new Set(calls.flatMap((call, index) => (call.hasBegun ? [index] : [])));
    this.#step = iterations;
    this.#run = run;
    this.#settled = new Set(calls.flatMap((call, index) => (call.record ? [index] : [])));
    this.#begun = new Set([...begun, ...begins]);
    const open = openMessage(message, (call, index) => this.#unsettledCall(call, index));
    const saved = messages.length - 1;
    if (!this.#isUnderWay) {
      const checkpoint = { ...checkpointOf(run, saved), open, version: versionOf(open) };
      await this.#write((claim) => this.#store.checkpoint(claim, checkpoint)).catch(() => {});
      this.#isUnderWay = true;
    } else if (message.reply !== record?.open) {
      const added = messages.slice(this.#messages, saved);
      this.#queue.push({ type: 'step', messages: added, iterations, usage, ...run.budget?.progress, open });
    } else
      for (const index of begins) if (!begun.has(index)) this.#add(index, open.calls[index] as StoredCall);
    this.#messages = saved;
    await this.#commit();
  }

  async start(call: ParsedCall): Promise<void> {
    const { index } = call.place;
    if (this.#begun.has(index)) return;
    this.#begun.add(index);
    this.#add(index, this.#unsettledCall(call, index));
    await this.#commit();
  }

  async save(call: ParsedCall, outcome: CallOutcome): Promise<void> {
    const { index } = call.place;
    if (this.#settled.has(index)) return;
    this.#settled.add(index);
    this.#add(index, jsonCall(outcome, call));
    this.#soon ??= nextTurn().then(() => {
      this.#soon = undefined;
      return this.#commit();
    });
    await this.#soon;
  }

  async saveOnce({ place }: ParsedCall, done: Parameters<Checkpointer['saveOnce']>[1]): Promise<void> {
    // Work that outlives its call may come here when other calls are open.
    if (place.step !== this.#step || this.#settled.has(place.index)) return;
    this.#queue.push({ type: 'once', index: place.index, ...done });
    await this.#commit();
    this.#claimed.lost.throwIfAborted();
  }

  async end({ messages }: LoopRun, result: ToolLoopResult): Promise<ToolLoopResult> {
    await this.#last.catch(() => {});
    const { state, status, content, iterations, usage, spent, error } = result;
    try {
      if (state !== undefined) await this.#suspend(state);
      else
        await this.#end(messages.slice(this.#messages), {
          status: status === 'suspended' ? 'failed' : status,
          content,
          iterations,
          usage,
          ...(spent === undefined ? {} : { spent }),
          ...(error === undefined ? {} : { error: storedError(error) }),
        });
      return result;
    } catch (cause) {
      const what = state === undefined ? 'end' : 'suspended state';
      const message = `The ${what} of the run could not be kept: ${errorMessage(cause)}`;
      const failed = new ToolwrightError('RunStoreFailed', message, { cause });
      return state === undefined
        ? { ...result, error: failed }
        : { ...result, status: 'failed', error: failed };
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
    await this.#claimed.write({
      write: (claim) => this.#store.end(claim, entries),
      wasDone: async () => (await this.#store.read(this.#claimed.claim.runId))?.status === 'ended',
    });
  }

  /** What is in the queue is part of the state. */
  async #suspend(state: RunState): Promise<void> {
    this.#queue = [];
    await this.#claimed.write({
      write: (claim) => this.#store.release(claim, state),
      wasDone: async () => (await this.#store.load(state.runId))?.revision === state.revision,
    });
  }

  #unsettledCall(call: ParsedCall, index: number): StoredCall {
    const stored = jsonCall(call.record ?? { call, suspension: call.suspension, inner: call.inner }, call);
    if (stored.status !== 'held') return stored;
    const { journal, inner } = call;
    const runs = inner === undefined ? {} : { inner };
    if (!this.#begun.has(index))
      return journal === undefined ? stored : { ...stored, status: 'waiting', waits: [], journal, ...runs };
    const { config, tools } = this.#run ?? {};
    const tool = tools?.offered(call.name);
    const isJob = (config?.engine !== undefined || tools?.hasEngine) && Boolean(tool?.background);
    const { readOnly } = tool?.annotations ?? call;
    return {
      ...stored,
      status: 'begun',
      ...(journal === undefined ? {} : { journal: journalOfRerun(journal) }),
      ...runs,
      ...(isJob ? { asJob: true } : {}),
      ...(readOnly ? { readOnly } : {}),
    };
  }

  #add(index: number, call: StoredCall): void {
    const last = this.#queue.at(-1);
    if (last?.type === 'calls') (last.calls as { index: number; call: StoredCall }[]).push({ index, call });
    else this.#queue.push({ type: 'calls', calls: [{ index, call }] });
  }

  /** All entries so far are committed, or the run is lost. */
  #commit(): Promise<void> {
    this.#last = this.#last.then(async () => {
      if (this.#queue.length === 0) return;
      const entries = this.#take();
      await this.#write((claim) => this.#store.append(claim, entries)).catch(() => {});
    });
    return this.#last;
  }

  #take(): RunEntry[] {
    const entries = this.#queue;
    this.#queue = [];
    return entries;
  }

  #write(write: Parameters<ClaimedRun['write']>[0]['write']): Promise<void> {
    return this.#claimed.write({ write });
  }
}

/** That a call was not done counts for one more beginning; if that is unknown again, it is asked again. */
function journalOfRerun({ outcome, ...known }: CallJournal): CallJournal {
  return outcome === undefined ? known : { ...known, reruns: (known.reruns ?? 0) + 1 };
}

/** A run as of now; without its last message if that is open. */
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
  throw new ToolwrightError('RunStoreFailed', 'The run cannot be kept: JSON cannot say its history.');
}

/** The outcome of a call, in any case as JSON: fields that JSON cannot represent are left out, and the others are not. */
function jsonCall(outcome: CallOutcome, call: ParsedCall): StoredCall {
  const stored = storedCall(outcome, call);
  // The store writes it as JSON at once.
  const plain = isPlainData(stored) ? stored : plainJson(stored);
  if (plain !== undefined) return plain as StoredCall;
  const { id, name } = call;
  if (stored.status !== 'settled') return { status: 'held', id, name, arguments: stored.arguments };
  const { result, ...record } = stored.record;
  return { status: 'settled', record: { ...plainFields(record), result: plainFields(result) } };
}

function plainFields<Fields extends object>(fields: Fields): Fields {
  const plain = Object.entries(fields).map(([name, value]) => [name, plainJson(value)] as const);
  return Object.fromEntries(plain.filter(([, value]) => value !== undefined)) as Fields;
}

/** An abort keeps the reason that was given for it, which is in the cause of the error. */
function storedError(error: unknown): NonNullable<StoredEnd['error']> {
  const { name = 'Error', code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
  const isAbort = ToolwrightError.is(error) && error.name === 'RunAborted' && error.cause !== undefined;
  const message = isAbort
    ? `${errorMessage(error).replace(/\.$/, '')}: ${errorMessage(error.cause)}`
    : errorMessage(error);
  return { name: String(name), message, ...(typeof code === 'number' ? { code } : {}) };
}
