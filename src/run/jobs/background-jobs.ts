import { setTimeout as pause } from 'node:timers/promises';
import { InvalidOptionsError, ToolDeclarationError } from '../../core/errors/author-fault.js';
import { withinLimits } from '../../core/kernel/async.js';
import { logAnswer, logFailure, logSilence } from '../call/failure-log.js';
import { beginJobs, jobLogger, type RunJobsOptions } from './run-jobs.js';

type BegunJobs = Awaited<ReturnType<typeof beginJobs>>;

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** How long the end of a process waits for a connection to an engine that is being opened. */
const BEGIN_WITHIN_MS = 5_000;

/** Runs jobs once the engine is reachable, however long that takes. */
export class BackgroundJobs {
  readonly #closing = new AbortController();
  readonly #runner: Promise<BegunJobs | undefined>;
  #begun: BegunJobs | undefined;

  constructor(options: RunJobsOptions) {
    this.#runner = this.#begin(options);
  }

  /** Takes no more jobs, and resolves when running jobs have ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    const begun = withinLimits(this.#runner, { signal: undefined, timeoutMs: BEGIN_WITHIN_MS });
    const runner = await begun.catch(() => undefined);
    await runner?.close();
  }

  /** Stops running jobs immediately, and leaves them to other processes. */
  leave(): void {
    this.#closing.abort();
    this.#begun?.leave();
  }

  async #begin(options: RunJobsOptions): Promise<BegunJobs | undefined> {
    const { signal } = this.#closing;
    const { engine } = options;
    const logger = jobLogger(options);
    for (let wait = FIRST_PAUSE_MS; !signal.aborted; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      try {
        const runner = await beginJobs(options);
        this.#begun = runner;
        logAnswer(engine, logger);
        if (!signal.aborted) return runner;
        await runner.close();
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error instanceof InvalidOptionsError || error instanceof ToolDeclarationError) {
          logFailure(logger, { what: 'Jobs are not done in this process', error });
          return undefined;
        }
        logSilence(engine, { logger, error });
        await pause(wait, undefined, { signal, ref: false }).catch(() => {});
      }
    }
    return undefined;
  }
}
