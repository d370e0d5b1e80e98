import { ToolResult } from '../contract/tool-result.js';
import { askPolicies } from './ask-policies.js';
import { OpenCall } from './open-call.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';
import { type Ended, runTool } from './run-tool.js';
import { writeEnding } from './write-ending.js';

/** Performs a call that waits for its turn or its permission, or whose work may outlive its answer. */
export async function performOpen(permitted: PermittedCall): Promise<PerformedCall> {
  const { log, since } = permitted;
  const open = new OpenCall(permitted);
  const performed = started(open, writeEnding(permitted, await run(permitted, open)));
  if (log.isRead) log.performed(performed, performance.now() - since);
  await open.answer(performed.result);
  return performed;
}

async function run(permitted: PermittedCall, open: OpenCall): Promise<Ended> {
  const { tool, call, checked, args, environment, log } = permitted;
  const { context } = open;
  const request = { tool, arguments: checked, context };
  const { policies = [], scope } = environment;
  const refusal = await askPolicies({ policies, request, signal: scope.signal, log });
  if (refusal !== undefined) return { how: 'refused', reason: refusal };
  log.started(checked);
  try {
    if (!(await open.begin())) return { how: 'aborted' };
  } catch (error) {
    return { how: 'threw', error };
  }
  return runTool({
    tool,
    call,
    args,
    context,
    environment,
    log,
    onEnd: (ended) => ended,
  });
}

/** A success with a completion to come is a start, also where the tool worded its own acknowledgement. */
function started(open: OpenCall, performed: PerformedCall): PerformedCall {
  const { status, result } = performed;
  if (status !== 'success' || !open.awaitsCompletion(result)) return performed;
  return {
    status: 'started',
    result: result.async ? result : new ToolResult({ ...result, async: true }),
  };
}
