import { canonicalJson } from '../checking/canonical-json.js';
import type { RunState, StoredWaitingCall } from '../contract/run-state.js';
import type { PendingCall, Wait } from '../contract/suspension.js';
import { nodeCrypto } from '../kernel/node-module.js';

/** One wait of a suspended run, with the call that has it. */
export interface OpenWait {
  readonly pending: PendingCall;
  readonly call: StoredWaitingCall;
  readonly wait: Wait;
}

/** What a state waits for, in the order of its calls. */
export function openWaits(state: Pick<RunState, 'runId' | 'iterations' | 'open'>): readonly OpenWait[] {
  return state.open.calls.flatMap((call) =>
    call.status === 'waiting'
      ? call.waits.map((wait) => ({ call, wait, pending: pendingCall(state, call, wait) }))
      : [],
  );
}

function pendingCall(
  state: Pick<RunState, 'runId' | 'iterations'>,
  { id: callId, name: tool, journal }: StoredWaitingCall,
  { kind, index, message, schema }: Wait,
): PendingCall {
  const { arguments: args } = journal;
  // The iteration: models use ids again, and a yes to one call must never count for a later one.
  const about = [state.runId, state.iterations, callId, tool, args, kind, index, message, schema];
  const digest = nodeCrypto().hash('sha256', canonicalJson(about), 'base64url').slice(0, 22);
  return {
    id: `${kind}_${digest}`,
    callId,
    kind,
    tool,
    arguments: args,
    ...(message === undefined ? {} : { message }),
    ...(schema === undefined ? {} : { schema }),
  };
}
