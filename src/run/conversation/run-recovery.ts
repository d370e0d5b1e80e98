import type { Logger } from '../../core/contract/ports.js';
import { MAX_TIMER_MS } from '../../core/kernel/async.js';
import { logFailure } from '../call/failure-log.js';
import { type RecoverOptions, recoverAll } from '../loop/recover-runs.js';

const DEFAULT_LEASE_MS = 30_000;

/** How lost runs go on. A store of conversations goes on with the runs of their turns itself. */
interface RunRecoveryOptions
  extends Pick<RecoverOptions, 'store' | 'config' | 'scope' | 'leaseMs' | 'onUnknown'> {
  /** Aborted, the runs that go on here are left as they are, to other processes. */
  readonly left?: AbortSignal;
  readonly logger?: Logger;
}

/** Looks again and again for runs whose process died, and goes on with them. */
export class RunRecovery {
  readonly #closing = new AbortController();
  #looking: Promise<void>;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RunRecoveryOptions) {
    this.#looking = this.#look(options);
  }

  /** Takes over no more runs, and resolves when those that go on here have ended, or are suspended. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    await this.#looking;
  }

  async #look(options: RunRecoveryOptions): Promise<void> {
    const { logger, left, leaseMs = DEFAULT_LEASE_MS, ...others } = options;
    const { signal } = this.#closing;
    const onResult: RecoverOptions['onResult'] = (run) => {
      if (!('error' in run)) return;
      const { runId, error } = run;
      logFailure(logger, { what: 'A run could not be gone on with', error, at: { runId } });
    };
    try {
      await recoverAll({ ...others, leaseMs, signal, onResult }, left);
    } catch (error) {
      logFailure(logger, { what: 'The store could not be asked for lost runs', error });
    }
    if (signal.aborted) return;
    const again = (): void => {
      this.#looking = this.#look(options);
    };
    this.#timer = setTimeout(again, Math.min(leaseMs / 3, MAX_TIMER_MS)).unref();
  }
}
