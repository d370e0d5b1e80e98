import { AsyncLocalStorage } from 'node:async_hooks';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import { canonicalJson } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';

/** The position of a call in its run. Models reuse call ids, but a position is unique. */
export interface CallPlace {
  readonly runId: string;
  /** The iteration whose reply contains the call; 1 is the first. */
  readonly step: number;
  /** Its index among the calls of that reply. */
  readonly index: number;
}

/** The facts that identify the effect of a call. */
interface EffectFacts {
  /** Outside a run: the id from the caller. */
  readonly of: CallPlace | string;
  readonly tool: string;
  /** As the model or an editor wrote them; the arguments that run depend on the version of the tool. */
  readonly arguments: JsonObject;
}

/** The key of a call's effect: the same whenever and wherever the same call is executed. */
export function effectKey(effect: EffectFacts): string {
  const { of, tool, arguments: args } = effect;
  const place = typeof of === 'string' ? [of] : [of.runId, of.step, of.index];
  return jsonDigest([...place, tool, args]);
}

/** The key of one part of a call's effect. */
export function partKey(effect: string, part: string): string {
  return jsonDigest([effect, part]);
}

/** The ids of the runs that one call starts: if it is executed again, they are the same. */
export class RunIds {
  /**
   * Those of the current job.
   *
   * @internal Its type needs those of Node.
   */
  static readonly ofJob = new AsyncLocalStorage<RunIds>();
  /** Set after the end of a job: later runs do not belong to it. */
  isOver = false;
  /** How often each was requested. */
  readonly #times = new Map<string, number>();

  constructor(private readonly effect: string) {}

  /** Runs a job; the ids of runs that start in it derive from its key. */
  static async inJob<Value>(effect: string, work: () => Promise<Value>): Promise<Value> {
    const ids = new RunIds(effect);
    try {
      return await RunIds.ofJob.run(ids, work);
    } finally {
      ids.isOver = true;
    }
  }

  /** The id of the next run with this question: not by order alone, which may differ the next time. */
  next(asked: unknown): string {
    // Messages that cannot be written as JSON are refused later, or omitted.
    let id = partKey(this.effect, 'run');
    try {
      id = jsonDigest([this.effect, 'run', asked]);
    } catch {}
    const times = this.#times.get(id) ?? 0;
    this.#times.set(id, times + 1);
    return times === 0 ? id : partKey(id, String(times));
  }

  /**
   * The id of a run that the tool itself starts, by its messages. System messages are ignored, because they may
   * contain varying text such as the time of day.
   */
  nextOf(messages: readonly Message[]): string {
    return this.next(messages.filter(({ role }) => role !== 'system'));
  }
}

/** A digest of JSON that does not depend on the order of keys. */
export function jsonDigest(value: unknown): string {
  return nodeCrypto().hash('sha256', canonicalJson(value), 'base64url');
}
