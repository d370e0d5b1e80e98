import { plainJson } from '../checking/plain-json.js';
import type { RunState, StoredCall } from '../contract/run-state.js';
import type { LoopRun } from './begin-run.js';
import { openWaits } from './open-waits.js';
import { stateFaults } from './read-state.js';
import { progressOf } from './run-progress.js';
import { signState } from './sign-state.js';

/** The assistant message whose calls are not all answered. */
export interface OpenMessage {
  readonly content: string;
  readonly calls: readonly StoredCall[];
}

/**
 * The state of a run that waits: plain JSON that shares nothing with the run. `undefined` where JSON cannot say
 * it, as of arguments that a model nested too deep, or where it would be no state.
 */
export function suspendRun(run: LoopRun, open: OpenMessage): RunState | undefined {
  try {
    const state = writeState(run, open);
    // What nobody could resume is not given out: the calls are answered instead.
    return stateFaults(state).length === 0 ? state : undefined;
  } catch {
    return undefined;
  }
}

function writeState(run: LoopRun, open: OpenMessage): RunState {
  const { config, resumed } = run;
  const runId = resumed?.runId ?? crypto.randomUUID();
  const progress = progressOf(run);
  const { iterations } = progress;
  const suspended: RunState = {
    version: 2,
    runId,
    revision: (resumed?.revision ?? 0) + 1,
    ...progress,
    open,
    pending: openWaits({ runId, iterations, open }).map(({ pending }) => pending),
  };
  const isOwned = progress.owner !== undefined;
  return signState(plainJson(suspended) as RunState, { secret: config.stateSecret, isOwned });
}
