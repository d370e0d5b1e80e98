import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../core/contract/ports.js';
import { unlessAborted, withinLimits } from '../../core/kernel/async.js';
import { logAnswer, logFailure, logSilence } from '../call/failure-log.js';

/** An engine, and how to test whether it answers. */
interface WatchedEngine {
  /** `BullMQ, queue 'toolwright' in Redis at 127.0.0.1:6379` */
  readonly name: string;
  /** The engine's own logger: receives every error, once a minute. */
  readonly logger: Logger | undefined;
  /** Resolves when the engine has answered; may reject if it is unavailable. */
  readonly ask: () => Promise<unknown>;
}

/** How long an engine with an error may take to answer before it counts as unavailable. */
const ANSWERS_WITHIN_MS = 1_000;
const ASK_AGAIN_MS = 500;

/** Determines whether an engine with an error still answers, and logs it for its workers. */
export class EngineTrouble {
  readonly #engine: WatchedEngine;
  readonly #listeners = new Set<{ readonly logger: Logger | undefined }>();
  readonly #closed = new AbortController();
  /** Aborted with the error while the engine is unavailable. */
  #away = new AbortController();
  #isLooking = false;

  constructor(engine: WatchedEngine) {
    this.#engine = engine;
  }

  get name(): string {
    return this.#engine.name;
  }

  /** `logger` receives events until the returned function is called; without a logger, the console does. */
  logTo(logger: Logger | undefined): () => void {
    const listener = { logger };
    if (this.#engine.logger === undefined) this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Every connection repeats the same failure: only the first report counts. */
  occurred(error: unknown): void {
    const { logger, name } = this.#engine;
    if (logger !== undefined) logFailure(logger, { what: name, error });
    if (this.#isLooking || this.#closed.signal.aborted) return;
    this.#isLooking = true;
    void this.#look(error).finally(() => {
      this.#isLooking = false;
    });
  }

  /** The answer to a request; rejects if the engine becomes unavailable, because the request would wait. */
  unlessAway<Value>(request: Promise<Value>): Promise<Value> {
    return unlessAborted(request, this.#away.signal);
  }

  close(): void {
    this.#closed.abort();
  }

  async #look(error: unknown): Promise<void> {
    const { name } = this.#engine;
    const answer = this.#answer();
    const isThere = withinLimits(answer, { signal: undefined, timeoutMs: ANSWERS_WITHIN_MS });
    if (await isThere.catch(() => false))
      return this.#log((logger) => logFailure(logger, { what: name, error }));
    if (this.#closed.signal.aborted) return;
    this.#log((logger) => logSilence(this.#engine, { logger, error }));
    this.#away.abort(error);
    if (!(await answer)) return;
    this.#away = new AbortController();
    this.#log((logger) => logAnswer(this.#engine, logger));
  }

  /** True as soon as the engine answers, false if it is closed before. */
  async #answer(): Promise<boolean> {
    const { signal } = this.#closed;
    for (;;) {
      try {
        await unlessAborted(this.#engine.ask(), signal);
        return true;
      } catch {
        await pause(ASK_AGAIN_MS, undefined, { signal, ref: false }).catch(() => {});
      }
      if (signal.aborted) return false;
    }
  }

  #log(log: (logger: Logger | undefined) => void): void {
    if (this.#closed.signal.aborted) return;
    for (const { logger } of this.#listeners) log(logger);
  }
}
