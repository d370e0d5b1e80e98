import type { Logger } from '../../core/contract/ports.js';
import { repeat } from '../../core/kernel/async.js';
import { logFailure } from '../call/failure-log.js';
import { type RecoverOptions, recoverAll } from '../loop/recover-runs.js';

/** How lost runs are continued. A store of conversations continues the runs of their turns itself. */
export interface RunRecoveryOptions
  extends Pick<RecoverOptions, 'store' | 'config' | 'scope' | 'leaseMs' | 'onUnknown'> {
  /** When aborted, the runs that are continued here are left unchanged to other processes. */
  readonly left?: AbortSignal;
  readonly logger?: Logger;
}

/**
 * Periodically searches for runs whose process crashed, and continues them. The returned function ends this, and
 * resolves when the runs that are continued here have ended or are suspended.
 */
export function recoverPeriodically({
  logger,
  left,
  leaseMs = 30_000,
  ...others
}: RunRecoveryOptions): () => Promise<void> {
  const onResult: RecoverOptions['onResult'] = (run) => {
    if (!('error' in run)) return;
    const { runId, error } = run;
    logFailure(logger, { what: 'A run could not be continued', error, at: { runId } });
  };
  return repeat(async (signal) => {
    try {
      await recoverAll({ ...others, leaseMs, signal, onResult }, left);
    } catch (error) {
      logFailure(logger, { what: 'The store could not be asked for lost runs', error });
    }
    return leaseMs / 3;
  });
}
