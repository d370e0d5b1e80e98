import { AsyncLocalStorage } from 'node:async_hooks';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import { canonicalJson } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';

/** Where in a run a call stands: models use call ids again, and a place is taken once. */
export interface CallPlace {
  readonly runId: string;
  /** The iteration whose reply has the call; 1 is the first. */
  readonly step: number;
  /** Its index among the calls of that reply. */
  readonly index: number;
}

/** A call by what makes its effect that one and no other. */
interface EffectFacts {
  /** Outside a run: the id that the caller gave the call. */
  readonly of: CallPlace | string;
  readonly tool: string;
  /** As they were given, by the model or whoever edited them: what runs depends on the version of the tool. */
  readonly arguments: JsonObject;
}

/** The key of what a call does: the same wherever and how often the same call is made. */
export function effectKey(effect: EffectFacts): string {
  const { of, tool, arguments: args } = effect;
  const place = typeof of === 'string' ? [of] : [of.runId, of.step, of.index];
  return jsonDigest([...place, tool, args]);
}

/** The key of one thing among those that a call does. */
export function partKey(effect: string, part: string): string {
  return jsonDigest([effect, part]);
}

/** The ids of the runs that one call begins: made again, the call has the same for them. */
export class RunIds {
  /** Those of the job that is done here. */
  static readonly ofJob = new AsyncLocalStorage<RunIds>();
  /** Of a job that has ended: what it has left behind is no part of it. */
  isOver = false;
  readonly #effect: string;
  /** How often each was asked for. */
  readonly #times = new Map<string, number>();

  constructor(effect: string) {
    this.#effect = effect;
  }

  /** Does a job, of whose key the ids are of the runs that begin in it. */
  static async inJob<Value>(effect: string, work: () => Promise<Value>): Promise<Value> {
    const ids = new RunIds(effect);
    try {
      return await RunIds.ofJob.run(ids, work);
    } finally {
      ids.isOver = true;
    }
  }

  /** The id of the next run that is asked this: not by their order alone, which may be another one the next time. */
  next(asked: unknown): string {
    const id = this.#first(asked);
    const times = this.#times.get(id) ?? 0;
    this.#times.set(id, times + 1);
    return times === 0 ? id : partKey(id, String(times));
  }

  /**
   * The id of a run that the tool itself begins, by what it asks; not by what it tells the model about that, such as the
   * time of day.
   */
  nextOf(messages: readonly Message[]): string {
    return this.next(messages.filter(({ role }) => role !== 'system'));
  }

  #first(asked: unknown): string {
    try {
      return jsonDigest([this.#effect, 'run', asked]);
    } catch {
      // What cannot be written as JSON is refused later, or left out.
      return partKey(this.#effect, 'run');
    }
  }
}

/** The same for the same JSON, in whatever order its keys are. */
export function jsonDigest(value: unknown): string {
  return nodeCrypto().hash('sha256', canonicalJson(value), 'base64url');
}
