import type { CallScope } from '../contract/call.js';
import type { Message } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import type { AsyncCallback } from '../contract/tool.js';
import type { ToolwrightError } from '../errors/toolwright-error.js';
import { onAbort } from '../kernel/async.js';
import { driveLoop } from '../loop/drive.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';
import { abortedBefore, type LoopEnd, type LoopRun, type RunDeps, type RunStart } from '../loop/loop-run.js';
import { resumeWith } from '../loop/resume.js';
import { checkOwner, type Ownership } from '../loop/run-owner.js';
import { driveStoredRun } from '../loop/stored-run.js';
import { progressOf } from '../loop/suspend.js';
import { type EventHub, type Turn, tellUser } from './events.js';
import type { ConversationConfig } from './options.js';
import type { StoredTurn, SuspendedStatus, TurnStatus } from './snapshot.js';

/** What a turn is made of. */
export interface TurnParts {
  readonly turn: Turn;
  /** Without a signal: work that the turn starts outlives it. */
  readonly scope: CallScope;
  readonly signal?: AbortSignal;
  readonly status: TurnStatus;
  /** The history with what began the turn. */
  readonly history: HistoryView;
  /** The runs of the turn are kept in a store where they are suspended. */
  readonly hasStore: boolean;
  /** Whose the turn is, is certain: it began in this process, or its snapshot is signed. Default: true. */
  readonly isCertain?: boolean;
}

/** A turn that has begun, how far it has come, and what a snapshot has to know of it. */
export class CurrentTurn {
  readonly turn: Turn;
  readonly scope: CallScope;
  /** Ends the turn. */
  readonly signal: AbortSignal;
  /** What it goes on from, in this process. */
  readonly begin: TurnStatus;
  readonly isCertain: boolean;
  readonly #stop = new AbortController();
  readonly #hasStore: boolean;
  readonly #detach: () => void;
  #history: HistoryView;
  #status: TurnStatus | (() => TurnStatus) | undefined;

  constructor({ turn, scope, signal, status, history, hasStore, isCertain = true }: TurnParts) {
    this.turn = turn;
    this.scope = scope;
    this.signal = this.#stop.signal;
    this.#detach = signal ? onAbort(signal, () => this.abort(signal.reason)) : () => {};
    this.begin = status;
    this.isCertain = isCertain;
    this.#status = status;
    this.#history = history;
    this.#hasStore = hasStore;
  }

  /** The history up to the last message whose calls all have their answers. */
  get history(): HistoryView {
    return this.#history;
  }

  /** What the run waits for, where it does. */
  get suspended(): SuspendedStatus | undefined {
    const status = this.#status;
    return typeof status === 'object' && status.status === 'suspended' ? status : undefined;
  }

  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Each call of the history has its answer. `promptLength`: messages of the run that are no part of the history. */
  step(run: LoopRun, { end, promptLength }: { end: LoopEnd | undefined; promptLength: number }): void {
    // A run that is suspended stands where it stood; with a store it is not safe there before it has ended.
    if (end?.status === 'suspended') {
      const { state } = end;
      if (state !== undefined && !this.#hasStore)
        this.#status = { status: 'suspended', state, isKept: false };
      return;
    }
    this.#history = new HistoryView(run.messages, promptLength);
    this.#status = end === undefined ? progressAt(run) : undefined;
  }

  /** Its run has ended: the work that it has started goes on, whatever is aborted from now on. */
  leave(): void {
    this.#detach();
  }

  /** The run has ended, or waits for answers. */
  end({ state, status, messages }: ToolLoopResult, promptLength: number): void {
    this.#history = new HistoryView(messages, promptLength);
    const isKept = this.#hasStore && status === 'suspended';
    this.#status = state && { status: 'suspended', state, isKept };
  }

  /** The run rejected: answers that were not taken leave it suspended, and all else ends it. */
  fail(): void {
    const { begin } = this;
    const isUntouched = this.#status === begin && begin.status === 'answered';
    if (!isUntouched) this.#status = undefined;
    else this.#status = { status: 'suspended', state: begin.state, isKept: begin.isKept };
  }

  /** What waits is asked about in another way, because its tools have changed. */
  askAnew(state: RunState): void {
    const { suspended } = this;
    if (suspended !== undefined) this.#status = { ...suspended, state };
  }

  /** As a snapshot keeps it; `undefined` once the run has said its last word. */
  stored(): StoredTurn | undefined {
    const status = typeof this.#status === 'function' ? this.#status() : this.#status;
    if (status === undefined) return undefined;
    const { number, origin } = this.turn;
    const isAborted = status.status !== 'suspended' && this.signal.aborted;
    return { number, origin, isAborted, standing: status };
  }
}

/** Progress as of now, worked out when a snapshot asks: what else the run counts, it counts at its next step. */
function progressAt(run: LoopRun): () => TurnStatus {
  const { toolCalls, iterations, usage } = run;
  const { length } = toolCalls;
  return () => {
    const { messages: _, ...progress } = progressOf(run);
    const calls = progress.toolCalls.slice(0, length);
    return { status: 'running', progress: { ...progress, toolCalls: calls, iterations, usage } };
  };
}

/** A part of an array that only grows; copied when somebody asks for it, and at most once. */
export class HistoryView {
  readonly #source: readonly Message[];
  readonly #from: number;
  readonly #to: number;
  #copy: readonly Message[] | undefined;

  constructor(source: readonly Message[], from = 0) {
    this.#source = source;
    this.#from = from;
    this.#to = source.length;
  }

  get messages(): readonly Message[] {
    this.#copy ??= Object.freeze(this.#source.slice(this.#from, this.#to));
    return this.#copy;
  }
}

/** What the run of a turn needs beside the turn. */
interface TurnSurroundings {
  readonly config: ConversationConfig;
  readonly events: EventHub;
  readonly onAsyncResult: AsyncCallback;
}

/** Runs a turn from what it goes on from, tells of it, and notes in the turn how far it has come. */
export async function runTurn(
  current: CurrentTurn,
  { config, events, onAsyncResult }: TurnSurroundings,
): Promise<ToolLoopResult> {
  const promptLength = promptLengthOf(current, config);
  const running = new Set<string>();
  const sink = (event: LoopEvent): void => {
    if (event.type === 'call-start') running.add(event.callId);
    if (event.type === 'call-end' || event.type === 'call-suspended') running.delete(event.callId);
    // What work reports that outlives its call is told as `task-progress`.
    if (event.type === 'call-progress' && !running.has(event.callId)) return;
    if (event.type === 'run-end') current.end(event.result, promptLength);
    events.tell(event);
    if (event.type === 'call-end')
      tellUser(events, event.result, { tool: event.tool, callId: event.callId, taskId: event.record.taskId });
  };
  const result = await drive(current, {
    config: { ...config, signal: current.signal, onAsyncResult },
    deps: {
      scope: current.scope,
      sink,
      hasReader: () => events.hasListeners,
      onStep: (run, end) => current.step(run, { end, promptLength }),
    },
  });
  current.end(result, promptLength);
  return result;
}

/** How many messages the run has before those of the conversation; a suspended run keeps the prompt it had. */
function promptLengthOf({ begin, history }: CurrentTurn, { systemPrompt }: ConversationConfig): number {
  if (begin.status !== 'running') return begin.state.messages.length - history.messages.length;
  return systemPrompt === undefined ? 0 : 1;
}

interface Drive {
  readonly config: ConversationConfig;
  readonly deps: Omit<RunDeps, 'saveTo' | 'checkpointer'>;
}

/**
 * A run that the store keeps is claimed there, so that of two processes with the same conversation one goes on
 * with it. Of a turn that was aborted it does not matter: it ends here.
 */
async function drive(current: CurrentTurn, { config, deps }: Drive): Promise<ToolLoopResult> {
  const { begin, signal } = current;
  const { store } = config;
  if (begin.status === 'answered' && begin.isKept && store !== undefined) {
    const { answers, answeredBy, state } = begin;
    const resumption = { answers, answeredBy, scope: current.scope };
    try {
      return await driveStoredRun(config, { store, runId: state.runId }, { resumption, deps });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
  let start: RunStart;
  try {
    start = await startOf(current, config);
  } catch (error) {
    // An abort ends a turn also where its run cannot be gone on with; then there is nothing to begin.
    if (!signal.aborted) throw error;
    return abortedBefore((begin.status === 'running' ? current.history : begin.state).messages, signal);
  }
  return driveLoop(config, start, deps);
}

async function startOf(
  { begin, history, scope, isCertain }: CurrentTurn,
  config: ConversationConfig,
): Promise<RunStart> {
  if (begin.status !== 'running') {
    const { answers, answeredBy } = begin.status === 'answered' ? begin : { answers: [] };
    return { record: await resumeWith(config, begin.state, { answers, answeredBy, scope, isCertain }) };
  }
  checkOwner({ owner: begin.progress?.owner ?? begin.owner, isCertain }, scope);
  const { systemPrompt: content } = config;
  const messages =
    content === undefined ? history.messages : [{ role: 'system' as const, content }, ...history.messages];
  return begin.progress === undefined ? { messages } : { record: { ...begin.progress, messages } };
}

/** Why a turn is not its scope's, where it is not. */
export function ownerFault(of: Ownership, scope: CallScope): ToolwrightError | undefined {
  try {
    checkOwner(of, scope);
    return undefined;
  } catch (error) {
    return error as ToolwrightError;
  }
}
