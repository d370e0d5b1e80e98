import { logFailure } from '../call/failure-log.js';
import type { OnUnknown } from '../call/invocation.js';
import { SafeLog } from '../call/log.js';
import type { CallScope } from '../contract/call.js';
import type { Logger } from '../contract/ports.js';
import type { CheckpointStore, KeptRun } from '../contract/run-checkpoint.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import type { ResumeConfig } from '../loop/options.js';
import { recoverAll } from '../loop/recover-runs.js';

const DEFAULT_LEASE_MS = 30_000;

/** What lost runs go on with. */
interface RunRecoveryParts {
  /** Where it keeps conversations, too, these go on with their runs themselves. */
  readonly store: CheckpointStore;
  readonly config: (run: KeptRun) => ResumeConfig | Promise<ResumeConfig>;
  readonly scope: (run: KeptRun) => CallScope | Promise<CallScope>;
  /** Milliseconds until a run can be taken over from this process, too; default 30,000. */
  readonly leaseMs?: number;
  /** What becomes of calls of which nobody knows what came; default: somebody is asked. */
  readonly onUnknown?: OnUnknown;
  /** Aborted, the runs that go on here are left as they stand, to other processes. */
  readonly left?: AbortSignal;
  readonly logger?: Logger;
}

/** Looks again and again for runs whose process died, and goes on with them. */
export class RunRecovery {
  readonly #parts: RunRecoveryParts;
  readonly #leaseMs: number;
  readonly #log: SafeLog;
  readonly #closing = new AbortController();
  #looking: Promise<void>;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: RunRecoveryParts) {
    this.#parts = parts;
    this.#leaseMs = parts.leaseMs ?? DEFAULT_LEASE_MS;
    this.#log = new SafeLog(parts.logger);
    this.#looking = this.#look();
  }

  /** Takes over no more runs, and resolves when those that go on here have ended, or are suspended. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { logger, left, ...parts } = this.#parts;
    const { signal } = this.#closing;
    try {
      await recoverAll(
        {
          ...parts,
          leaseMs: this.#leaseMs,
          signal,
          onResult: (run) => {
            if (!('error' in run)) return;
            const { runId, error } = run;
            logFailure(logger, { what: 'A run could not be gone on with', error, at: { runId } });
          },
        },
        left,
      );
    } catch (error) {
      this.#log.warn('The store could not be asked for lost runs', { error });
    }
    if (signal.aborted) return;
    const again = (): void => {
      this.#looking = this.#look();
    };
    this.#timer = setTimeout(again, Math.min(this.#leaseMs / 3, MAX_TIMER_MS)).unref();
  }
}
