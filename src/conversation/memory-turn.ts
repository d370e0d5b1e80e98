import { AsyncLocalStorage } from 'node:async_hooks';
import type { Answer, CallScope } from '../contract/call.js';
import type { Message } from '../contract/llm-provider.js';
import { onAbort } from '../kernel/async.js';
import type { ToolLoopResult } from '../loop/events.js';
import type { RunDeps } from '../loop/loop-run.js';
import { progressOf } from '../loop/suspend.js';
import type { Turn } from './events.js';
import type { StoredTurn, SuspendedStatus, TurnStatus } from './snapshot.js';

/** Receives what came of a turn, as a promise does. */
export interface Outcome {
  resolve(result: ToolLoopResult): void;
  reject(error: unknown): void;
}

interface TurnParts {
  readonly turn: Turn;
  /** Without a signal: work that the turn starts outlives it. */
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
  /** What the turn goes on from, in this process. */
  readonly begin: TurnStatus;
  /** The history with what began the turn. */
  readonly history: HistoryView;
  /** Suspended runs of the turn are in a store. */
  readonly hasStore: boolean;
  /** Whose the turn is, is certain: it began in this process, or its snapshot is signed. */
  readonly isCertain: boolean;
  readonly outcome?: Outcome | undefined;
}

/** A turn that has begun in this process, how far it has come, and what a snapshot says of it. */
export class MemoryTurn {
  readonly turn: Turn;
  readonly scope: CallScope;
  readonly begin: TurnStatus;
  readonly isCertain: boolean;
  readonly outcome: Outcome | undefined;
  readonly within = AsyncLocalStorage.snapshot();
  /** The history up to the last message whose calls all have their answers. */
  history: HistoryView;
  /** What a snapshot goes on from; `undefined` once the run has ended. */
  status: TurnStatus | (() => TurnStatus) | undefined;
  /** In this process. */
  hasStarted = false;
  readonly #stop = new AbortController();
  #ended: ToolLoopResult | undefined;
  readonly #hasStore: boolean;
  readonly #unfollow: () => void;

  constructor({ turn, scope, signal, begin, history, hasStore, isCertain, outcome }: TurnParts) {
    this.turn = turn;
    this.scope = scope;
    this.begin = begin;
    this.status = begin;
    this.history = history;
    this.isCertain = isCertain;
    this.outcome = outcome;
    this.#hasStore = hasStore;
    this.#unfollow = signal ? onAbort(signal, () => this.abort(signal.reason)) : () => {};
  }

  /** Ends the turn. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Ends the listening to the signals that it was given. */
  leave(): void {
    this.#unfollow();
  }

  /** What the run waits for, if it does. */
  get suspended(): SuspendedStatus | undefined {
    const { status } = this;
    return typeof status === 'object' && status.status === 'suspended' ? status : undefined;
  }

  /** The suspended turn as it goes on with answers. */
  resumedWith(
    answered: { readonly answers: readonly Answer[]; readonly answeredBy?: unknown },
    resumedBy: 'answer' | 'abort',
  ): Omit<TurnParts, 'hasStore' | 'signal'> {
    const { turn, scope, history, isCertain } = this;
    const suspended = this.suspended as SuspendedStatus;
    const begin = { ...suspended, status: 'answered', ...answered } as const;
    return { turn: { ...turn, resumedBy }, scope, begin, history, isCertain };
  }

  /** What the turn was before its answers, if the run has not gone on with them. */
  get untouched(): SuspendedStatus | undefined {
    const { begin, status } = this;
    if (status !== begin || begin.status !== 'answered') return undefined;
    return { status: 'suspended', state: begin.state, isKept: begin.isKept };
  }

  /** Follows the steps of its run. `promptLength`: messages of the run that are no part of the history. */
  stepListener(promptLength: number): NonNullable<RunDeps['onStep']> {
    return (run, end) => {
      if (end?.status !== 'suspended') {
        this.history = new HistoryView(run.messages, promptLength);
        const { toolCalls, iterations, usage } = run;
        const { length } = toolCalls;
        // Worked out when a snapshot asks. What the run counts after this step belongs to the next.
        const progress = (): TurnStatus => {
          const { messages: _, ...now } = progressOf(run);
          const calls = now.toolCalls.slice(0, length);
          return { status: 'running', progress: { ...now, toolCalls: calls, iterations, usage } };
        };
        this.status = end === undefined ? progress : undefined;
      }
      // With a store, the run is not safe there before it has ended.
      else if (end.state !== undefined && !this.#hasStore)
        this.status = { status: 'suspended', state: end.state, isKept: false };
    };
  }

  /** The run has ended, or waits for answers. */
  end(result: ToolLoopResult, promptLength: number): void {
    if (result === this.#ended) return;
    this.#ended = result;
    const { state, status } = result;
    const messages = result.messages as Message[];
    this.history = new HistoryView(messages, promptLength);
    const isKept = this.#hasStore && status === 'suspended';
    this.status = state && { status: 'suspended', state, isKept };
    // Later turns append to the array of the run: whoever reads the result gets a copy.
    const { length } = messages;
    let copy: Message[] | undefined;
    const get = (): Message[] => {
      copy ??= messages.slice(0, length);
      return copy;
    };
    Object.defineProperty(result, 'messages', { get, enumerable: true, configurable: true });
  }

  /** As a snapshot has it; `undefined` once the run has ended. */
  stored(): StoredTurn | undefined {
    const status = typeof this.status === 'function' ? this.status() : this.status;
    if (status === undefined) return undefined;
    const { number, origin } = this.turn;
    const isAborted = status.status !== 'suspended' && this.signal.aborted;
    return { number, origin, isAborted, standing: status };
  }
}

/** A part of an array that only grows; copied when it is asked for. */
export class HistoryView {
  readonly #source: Message[];
  readonly #from: number;
  readonly #to: number;
  #copy: readonly Message[] | undefined;

  /** Messages before `from` are no part of the history. */
  constructor(source: Message[], from = 0) {
    this.#source = source;
    this.#from = from;
    this.#to = source.length;
  }

  get messages(): readonly Message[] {
    this.#copy ??= Object.freeze(this.#source.slice(this.#from, this.#to));
    return this.#copy;
  }

  /** The messages of a run that begins here, which appends to them. */
  get forRun(): readonly Message[] {
    return this.#source;
  }

  /**
   * The history with messages after it, behind a system prompt. They are appended to the same array if it ends here and
   * begins with that prompt: to copy a long history takes longer than a turn.
   */
  extended(systemPrompt: string | undefined, said: readonly Message[]): HistoryView {
    const system: Message[] = systemPrompt === undefined ? [] : [{ role: 'system', content: systemPrompt }];
    const isAtEnd = this.#to === this.#source.length && this.#from === system.length;
    const isSame = isAtEnd && (systemPrompt === undefined || this.#source[0]?.content === systemPrompt);
    const source = isSame ? this.#source : system.concat(this.#source.slice(this.#from, this.#to));
    source.push(...said);
    return new HistoryView(source, system.length);
  }
}
