import type { Invocation } from '../call/invocation.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { answerWait, type WaitAnswer } from '../call/waits.js';
import { readArguments } from '../checking/read-arguments.js';
import type { CallJournal, CallScope } from '../contract/call.js';
import { type SeenCall, TRIAL, type WatchedCalls } from './watched-calls.js';

/** A call that somebody makes at the page. */
interface TrialCall {
  readonly tool: string;
  /** An object, or the text that a model would send. */
  readonly arguments: unknown;
  readonly scope: CallScope;
}

/** A journal to go on with, and the call that it is of. */
interface Waiting {
  readonly trial: TrialCall;
  readonly invocation: Extract<Invocation, { readonly status: 'suspended' }>;
}

/** Makes calls of a registry for the page, as any other caller would. */
export class TrialCalls {
  readonly #registry: ToolRegistry;
  readonly #calls: WatchedCalls;
  /** By the key of the call that was seen. */
  readonly #waiting = new Map<string, Waiting>();
  #count = 0;

  constructor(registry: ToolRegistry, calls: WatchedCalls) {
    this.#registry = registry;
    this.#calls = calls;
  }

  async make(trial: TrialCall, journal?: CallJournal): Promise<SeenCall | undefined> {
    this.#count += 1;
    const id = `${TRIAL}${this.#count}`;
    const { tool, arguments: args, scope } = trial;
    const begin = performance.now();
    const read = readArguments(args);
    const readMs = performance.now() - begin;
    const request = { id, name: tool, arguments: args, read, ...(journal ? { journal } : {}) };
    const invocation = await this.#registry.invoke(request, { ...scope, callId: id });
    this.#calls.addRead(id, readMs);
    const seen = this.#calls.find(id);
    if (seen !== undefined && invocation.status === 'suspended')
      this.#waiting.set(seen.key, { trial, invocation });
    return seen;
  }

  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  /**
   * Answers what a call of the page waits for; edited arguments are checked as any others are, and count as approved.
   *
   * @throws Error where the answer does not fit.
   */
  async answer(key: string, { arguments: edited, ...answer }: TrialAnswer): Promise<SeenCall | undefined> {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) throw new Error('this call waits for nothing');
    if (edited === undefined) return this.#continueCall(key, waiting, answer);
    const again = await this.make({ ...waiting.trial, arguments: edited });
    this.#waiting.delete(key);
    const next = again === undefined ? undefined : this.#waiting.get(again.key);
    return again === undefined || next === undefined ? again : this.#continueCall(again.key, next, answer);
  }

  async #continueCall(
    key: string,
    { trial, invocation }: Waiting,
    answer: WaitAnswer,
  ): Promise<SeenCall | undefined> {
    const { waits, journal } = invocation.suspension;
    const [wait] = waits;
    if (wait === undefined) throw new Error('this call waits for nothing');
    const answered = answerWait({ wait, journal }, answer);
    if (!answered.ok) throw new Error(answered.problem);
    this.#waiting.delete(key);
    return this.make(trial, answered.journal);
  }
}

/** An answer to a call of the page. */
export type TrialAnswer = WaitAnswer & { readonly arguments?: unknown };
