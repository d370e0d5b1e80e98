import type { Answer, CallScope } from '../../core/contract/call.js';
import type { Message } from '../../core/contract/llm-provider.js';
import { onAbort } from '../../core/kernel/async.js';
import { driveLoop } from '../loop/drive.js';
import type { ToolLoopResult } from '../loop/events.js';
import { abortedBefore, type RunDeps, type RunStart } from '../loop/loop-run.js';
import { resumeWith } from '../loop/resume.js';
import { checkOwner } from '../loop/run-owner.js';
import { driveStoredRun } from '../loop/stored-run.js';
import { progressOf } from '../loop/suspend.js';
import type { StoredTurn, SuspendedStatus, TurnStatus } from './conversation-snapshot.js';
import type { Turn } from './events.js';
import type { ConversationConfig } from './options.js';

/** Receives the outcome of a turn. */
export type TurnOutcome = Pick<PromiseWithResolvers<ToolLoopResult>, 'resolve' | 'reject'>;

/** What a turn begins or continues with in this process. */
export interface TurnStart {
  readonly turn: Turn;
  /** Without a signal, because work that the turn starts outlives it. */
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
  /** The state from which the turn continues in this process. */
  readonly begin: TurnStatus;
  /** The history with the origin of the turn. */
  readonly history: HistoryView;
  /** The owner of the turn is certain: it began in this process, or its snapshot is signed. */
  readonly isCertain: boolean;
  readonly outcome?: TurnOutcome | undefined;
}

/** A turn that has begun in this process, its progress, and its state for a snapshot. */
export class MemoryTurn {
  /** The history up to the last message whose calls all have their answers. */
  history: HistoryView;
  /** The state for a snapshot; `undefined` once the run has ended. */
  status: TurnStatus | (() => TurnStatus) | undefined;
  /** In this process. */
  isRunning = false;
  /** Ends the turn. */
  readonly stop = new AbortController();
  #ended: ToolLoopResult | undefined;
  readonly #unfollow: () => void;

  constructor(
    readonly start: TurnStart,
    /** Suspended runs of the turn are in a store. */
    private readonly hasStore: boolean,
  ) {
    const { begin, history, signal } = start;
    this.status = begin;
    this.history = history;
    this.#unfollow = signal ? onAbort(signal, () => this.stop.abort(signal.reason)) : () => {};
  }

  /** Ends the run of the turn, and removes the listeners of its signals. */
  leave(): void {
    this.isRunning = false;
    this.#unfollow();
  }

  /** The waits of the run, if it is suspended. */
  get suspended(): SuspendedStatus | undefined {
    const { status } = this;
    const isSuspended = typeof status === 'object' && status.status === 'suspended' && !this.isRunning;
    return isSuspended ? status : undefined;
  }

  /** The suspended turn with its answers. */
  resumedWith(
    answered: { readonly answers: readonly Answer[]; readonly answeredBy?: unknown },
    resumedBy: 'answer' | 'abort',
  ): TurnStart {
    const { turn, scope, isCertain } = this.start;
    const begin = { ...(this.suspended as SuspendedStatus), status: 'answered', ...answered } as const;
    return { turn: { ...turn, resumedBy }, scope, begin, history: this.history, isCertain };
  }

  /** The run rejected: if its answers were refused, the turn stays suspended; all other errors end it. */
  fail(): void {
    const { begin } = this.start;
    const isRefused = this.status === begin && begin.status === 'answered';
    this.status = isRefused ? { status: 'suspended', state: begin.state, isKept: begin.isKept } : undefined;
  }

  /** Follows the steps of its run. */
  readonly onStep: NonNullable<RunDeps['onStep']> = (run, end) => {
    if (end?.status !== 'suspended') {
      this.history = new HistoryView(run.messages, this.history.from);
      const { toolCalls, iterations, usage } = run;
      const { length } = toolCalls;
      // Evaluated when a snapshot is made. Counts of the run after this step belong to the next one.
      const progress = (): TurnStatus => {
        const { messages: _, ...now } = progressOf(run);
        const calls = now.toolCalls.slice(0, length);
        return { status: 'running', progress: { ...now, toolCalls: calls, iterations, usage } };
      };
      this.status = end === undefined ? progress : undefined;
    }
    // With a store, the run is only safe there after it has ended.
    else if (end.state !== undefined && !this.hasStore)
      this.status = { status: 'suspended', state: end.state, isKept: false };
  };

  /** The run has ended, or waits for answers. */
  end(result: ToolLoopResult): void {
    if (result === this.#ended) return;
    this.#ended = result;
    const { state, status } = result;
    const messages = result.messages as Message[];
    this.history = new HistoryView(messages, this.history.from);
    const isKept = this.hasStore && status === 'suspended';
    this.status = state && { status: 'suspended', state, isKept };
    // Later turns append to the array of the run, so readers of the result receive a copy.
    const whole = new HistoryView(messages);
    Object.defineProperty(result, 'messages', {
      get: () => whole.messages,
      enumerable: true,
      configurable: true,
    });
  }

  /** The form for a snapshot; `undefined` once the run has ended. */
  stored(isClosing: boolean): StoredTurn | undefined {
    const standing = typeof this.status === 'function' ? this.status() : this.status;
    if (standing === undefined) return undefined;
    const { number, origin } = this.start.turn;
    const isAborted = standing.status !== 'suspended' && this.stop.signal.aborted;
    // The aborted run removes itself from the store when it ends.
    const isFreed = isClosing && standing.status === 'answered';
    return { number, origin, isAborted, standing: isFreed ? { ...standing, isKept: false } : standing };
  }
}

/** A part of an array that only grows; it is copied when it is read. */
export class HistoryView {
  readonly #to: number;
  #copy: readonly Message[] | undefined;

  /** Runs that start here append to `source`. Its messages before `from` are not part of the history. */
  constructor(
    readonly source: Message[],
    readonly from = 0,
  ) {
    this.#to = source.length;
  }

  get messages(): readonly Message[] {
    this.#copy ??= this.source.slice(this.from, this.#to);
    return this.#copy;
  }

  /**
   * The history with additional messages, after a system prompt. They are appended to the same array if it ends here
   * and starts with that prompt, because copying a long history takes longer than a turn.
   */
  extended(systemPrompt: string | undefined, said: readonly Message[]): HistoryView {
    const system: Message[] = systemPrompt === undefined ? [] : [{ role: 'system', content: systemPrompt }];
    const isAtEnd = this.#to === this.source.length && this.from === system.length;
    const isSame = isAtEnd && (systemPrompt === undefined || this.source[0]?.content === systemPrompt);
    const source = isSame ? this.source : system.concat(this.source.slice(this.from, this.#to));
    source.push(...said);
    return new HistoryView(source, system.length);
  }
}

/** Runs a turn until it ends or waits for answers. */
export async function drive(
  { start, stop: { signal } }: MemoryTurn,
  config: ConversationConfig,
  deps: RunDeps,
): Promise<ToolLoopResult> {
  const { begin, scope, history } = start;
  const throwUnlessAborted = (error: unknown): undefined => {
    if (!signal.aborted) throw error;
  };
  if (begin.status === 'answered' && begin.isKept && config.store !== undefined) {
    const { answers, answeredBy, state } = begin;
    const run = { store: config.store, runId: state.runId };
    const resumption = { answers, answeredBy, scope };
    // If two processes resume a run in the store, only one claims it. An aborted turn ends here in any case.
    const result = await driveStoredRun(config, run, { resumption, deps }).catch(throwUnlessAborted);
    if (result !== undefined) return result;
  }
  // An abort ends a turn even if its run cannot continue; then there is nothing to start.
  const runStart = await startOf(start, config).catch(throwUnlessAborted);
  return runStart === undefined ? abortedBefore(history.source, signal) : driveLoop(config, runStart, deps);
}

async function startOf(
  { begin, history, scope, isCertain }: TurnStart,
  config: ConversationConfig,
): Promise<RunStart> {
  if (begin.status !== 'running') {
    const { answers, answeredBy } = begin.status === 'answered' ? begin : { answers: [] };
    return { record: await resumeWith(config, begin.state, { answers, answeredBy, scope, isCertain }) };
  }
  const { progress, owner } = begin;
  checkOwner({ owner: progress?.owner ?? owner, isCertain }, scope);
  const messages = history.source;
  return progress === undefined ? { messages, isShared: true } : { record: { ...progress, messages } };
}
