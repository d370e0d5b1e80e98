import type { CallScope } from '../contract/call-scope.js';
import { onAbort } from '../kernel/on-abort.js';
import type { LoopRun } from '../loop/begin-run.js';
import type { ToolLoopResult } from '../loop/loop-result.js';
import type { LoopEnd } from '../loop/loop-state.js';
import { progressOf } from '../loop/run-progress.js';
import type { Turn } from './conversation-event.js';
import type { StoredStanding, StoredTurn, SuspendedStanding } from './conversation-snapshot.js';
import { HistoryView } from './history-view.js';

/** What a turn is made of. */
export interface TurnParts {
  readonly turn: Turn;
  /** Without a signal: work that the turn starts outlives it. */
  readonly scope: CallScope;
  readonly signal?: AbortSignal;
  readonly standing: StoredStanding;
  /** The history with what began the turn. */
  readonly history: HistoryView;
  /** The runs of the turn are kept in a store where they are suspended. */
  readonly hasStore: boolean;
  /** Whose the turn is, is certain: it began in this process, or its snapshot is signed. Default: true. */
  readonly isCertain?: boolean;
}

/** A turn that has begun, how far it has come, and what a snapshot has to know of it. */
export class OpenTurn {
  readonly turn: Turn;
  readonly scope: CallScope;
  /** Ends the turn. */
  readonly signal: AbortSignal;
  /** What it goes on from, in this process. */
  readonly begin: StoredStanding;
  readonly isCertain: boolean;
  readonly #stop = new AbortController();
  readonly #hasStore: boolean;
  readonly #detach: () => void;
  #history: HistoryView;
  #standing: StoredStanding | (() => StoredStanding) | undefined;

  constructor({ turn, scope, signal, standing, history, hasStore, isCertain = true }: TurnParts) {
    this.turn = turn;
    this.scope = scope;
    this.signal = this.#stop.signal;
    this.#detach = signal ? onAbort(signal, () => this.abort(signal.reason)) : () => {};
    this.begin = standing;
    this.isCertain = isCertain;
    this.#standing = standing;
    this.#history = history;
    this.#hasStore = hasStore;
  }

  /** The history up to the last message whose calls all have their answers. */
  get history(): HistoryView {
    return this.#history;
  }

  /** What the run waits for, where it does. */
  get suspended(): SuspendedStanding | undefined {
    const standing = this.#standing;
    return typeof standing === 'object' && standing.status === 'suspended' ? standing : undefined;
  }

  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Each call of the history has its answer. `promptLength`: messages of the run that are no part of the history. */
  step(run: LoopRun, { end, promptLength }: { end: LoopEnd | undefined; promptLength: number }): void {
    // A run that is suspended stands where it stood; with a store it is not safe there before it has ended.
    if (end?.status === 'suspended') {
      if (end.state !== undefined && !this.#hasStore) this.#suspend(end.state, false);
      return;
    }
    this.#history = new HistoryView(run.state.messages, promptLength);
    this.#standing = end === undefined ? progressAt(run) : undefined;
  }

  /** Its run has ended: the work that it has started goes on, whatever is aborted from now on. */
  leave(): void {
    this.#detach();
  }

  /** The run has ended, or waits for answers. */
  end({ state, status, messages }: ToolLoopResult, promptLength: number): void {
    this.#history = new HistoryView(messages, promptLength);
    if (state === undefined) this.#standing = undefined;
    else this.#suspend(state, this.#hasStore && status === 'suspended');
  }

  /** The run rejected: answers that were not taken leave it suspended, and all else ends it. */
  fail(): void {
    const { begin } = this;
    const isUntouched = this.#standing === begin && begin.status === 'answered';
    if (isUntouched) this.#suspend(begin.state, begin.isKept);
    else this.#standing = undefined;
  }

  /** As a snapshot keeps it; `undefined` once the run has said its last word. */
  stored(): StoredTurn | undefined {
    const standing = typeof this.#standing === 'function' ? this.#standing() : this.#standing;
    if (standing === undefined) return undefined;
    const { number, origin } = this.turn;
    const isAborted = standing.status !== 'suspended' && this.signal.aborted;
    return { number, origin, isAborted, standing };
  }

  #suspend(state: SuspendedStanding['state'], isKept: boolean): void {
    this.#standing = { status: 'suspended', state, isKept };
  }
}

/** Progress as of now, worked out when a snapshot asks: what else the run counts, it counts at its next step. */
function progressAt(run: LoopRun): () => StoredStanding {
  const { toolCalls, iterations, usage } = run.state;
  const { length } = toolCalls;
  return () => {
    const { messages: _, ...progress } = progressOf(run);
    const calls = progress.toolCalls.slice(0, length);
    return { status: 'running', progress: { ...progress, toolCalls: calls, iterations, usage } };
  };
}
