import { isSerializedResult, ToolResult } from '../contract/tool-result.js';
import { askPolicies } from './ask-policies.js';
import { concludeRun } from './conclude-run.js';
import { gateOf } from './gate-of.js';
import { OpenCall } from './open-call.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';
import { type Ended, limitsOf, runTool } from './run-tool.js';
import { suspendAt } from './suspend-call.js';
import { writeEnding } from './write-ending.js';

/**
 * Performs a call that waits for its turn, for a permission or for somebody's answer, or whose work may
 * outlive its answer.
 */
export async function performOpen(permitted: PermittedCall): Promise<PerformedCall> {
  const { log, since } = permitted;
  const open = new OpenCall(permitted);
  const performed = withTask(open, await perform(permitted, open));
  if (log.isRead) log.performed(performed, performance.now() - since);
  await open.answer(performed);
  return performed;
}

/** allow ▸ run */
async function perform(permitted: PermittedCall, open: OpenCall): Promise<PerformedCall> {
  const { tool, call, checked, environment, log } = permitted;
  const { context } = open;
  const { refused, result } = call.journal ?? {};
  if (refused !== undefined) return writeEnding(permitted, { how: 'refused', reason: refused.reason ?? NO });
  if (result !== undefined)
    return writeEnding(permitted, { how: 'returned', value: clientResult(result.value) });
  const { policies = [], scope } = environment;
  const request = { tool, arguments: checked, context };
  const limits = limitsOf(permitted);
  const reason = await askPolicies({ policies, request, limits, log });
  if (reason !== undefined) return writeEnding(permitted, { how: 'refused', reason });
  const wait = permitted.plan.isGuarded ? await gateOf(permitted, context, limits) : undefined;
  if (scope.signal?.aborted) return writeEnding(permitted, { how: 'aborted' });
  if (wait !== undefined) return suspendAt(wait, permitted);
  log.started(checked);
  return concludeRun(permitted, { ended: await run(permitted, open), checked, context });
}

const NO = 'it was not approved';

/** The client may word its result as `JSON.stringify` writes a `ToolResult`. */
function clientResult(value: unknown): unknown {
  return isSerializedResult(value) ? ToolResult.fromJSON(value) : value;
}

async function run(permitted: PermittedCall, open: OpenCall): Promise<Ended> {
  const { tool, call, args, environment, log } = permitted;
  const { context } = open;
  if (open.isBackground) return { how: 'returned', value: open.startMethod() };
  try {
    const onEnd = (ended: Ended): Ended => ended;
    const ended = await open.inTurn(() => runTool({ tool, call, args, context, environment, log, onEnd }));
    return ended instanceof ToolResult ? { how: 'returned', value: ended } : (ended ?? { how: 'aborted' });
  } catch (error) {
    return { how: 'threw', error };
  }
}

/** A success with a completion to come is a start, also where the tool worded its own acknowledgement. */
function withTask(open: OpenCall, performed: PerformedCall): PerformedCall {
  const taskId = open.outlivedBy(performed);
  const { status, result } = performed;
  if (taskId === undefined) return performed;
  // The method failed after it had begun its work, which completes all the same.
  if (status !== 'success') return { ...performed, taskId };
  return {
    status: 'started',
    result: result.async ? result : new ToolResult({ ...result, async: true }),
    taskId,
  };
}
