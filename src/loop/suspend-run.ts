import { randomUUID } from 'node:crypto';
import type { RunState, StoredCall } from '../contract/run-state.js';
import type { LoopRun } from './begin-run.js';
import { openWaits } from './pending-calls.js';
import { signState } from './sign-state.js';
import { storedRecord } from './stored-call.js';

/** The assistant message whose calls are not all answered. */
export interface OpenMessage {
  readonly content: string;
  readonly calls: readonly StoredCall[];
}

/** The state of a run that waits: plain JSON that shares nothing with the run. */
export function suspendRun(run: LoopRun, open: OpenMessage): RunState {
  const { config, state, retries, guard, resumed } = run;
  const runId = resumed?.runId ?? randomUUID();
  const { iterations, usage } = state;
  const suspended: RunState = {
    version: 1,
    runId,
    revision: (resumed?.revision ?? 0) + 1,
    messages: state.messages,
    open,
    pending: openWaits({ runId, iterations, open }).map(({ pending }) => pending),
    toolCalls: state.toolCalls.map(storedRecord),
    iterations,
    usage,
    retries: retries.spent,
    ...(guard === undefined ? {} : { guard: guard.memory }),
  };
  return signState(JSON.parse(JSON.stringify(suspended)) as RunState, config.stateSecret);
}
