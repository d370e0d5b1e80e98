import type { Reconciliation } from '../contract/tool.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { withinLimits } from '../kernel/async.js';
import { isRecord } from '../kernel/json.js';
import { argumentsBefore } from './check-arguments.js';
import { type Call, contextOf, limitsOf } from './context.js';
import type { Obstacle } from './invocation.js';

/**
 * What keeps a call from being made again that had begun when its process died: its result where the tool knows it,
 * or that nobody knows. `undefined` where it may be made.
 */
export async function obstacleOfBegun(call: Call): Promise<Obstacle | undefined> {
  const { tool, environment, request } = call;
  const { readOnly, idempotent } = tool.annotations ?? {};
  // A job has the key of its call: one that was started is not started again.
  if (readOnly || idempotent || (tool.background && environment.jobs !== undefined)) return undefined;
  const known = await reconciled(call);
  if (known.status === 'done') return { how: 'returned', value: known.result };
  if (known.status === 'not-done' || environment.onUnknown === 'rerun') return undefined;
  const message = `The process died while '${tool.name}' ran. It is not known whether it was done.`;
  if (environment.onUnknown === 'error')
    return { how: 'threw', error: new ToolwrightError('OutcomeUnknown', message) };
  return { how: 'waits', wait: { kind: 'outcome', index: request.journal?.reruns ?? 0, message } };
}

/** What the tool itself says of a call that had begun. One that cannot say it knows nothing. */
async function reconciled(call: Call): Promise<Reconciliation> {
  const { tool, request, log } = call;
  if (tool.reconcile === undefined) return { status: 'unknown' };
  const context = contextOf(call);
  const { idempotencyKey } = context;
  const begun = { callId: request.id, idempotencyKey, arguments: argumentsBefore(call) };
  try {
    const known: unknown = await withinLimits(tool.reconcile(begun, context), limitsOf(call));
    if (isReconciliation(known)) return known;
    log.ignored('What a tool said of a call that had begun says nothing', { known });
  } catch (error) {
    log.ignored('A tool could not say what came of a call that had begun', { error });
  }
  return { status: 'unknown' };
}

function isReconciliation(known: unknown): known is Reconciliation {
  return isRecord(known) && ['done', 'not-done', 'unknown'].includes(String(known.status));
}
