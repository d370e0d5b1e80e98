import type { CallStatus } from '../contract/call-record.js';
import { ToolResult } from '../contract/tool-result.js';
import { askPolicies } from './ask-policies.js';
import { CallContext } from './call-context.js';
import { OpenCall } from './open-call.js';
import type { PermittedCall } from './permitted-call.js';
import { type Ended, runTool } from './run-tool.js';
import { writeEnding } from './write-ending.js';

/** What came of a call. */
export interface PerformedCall {
  readonly status: CallStatus;
  readonly result: ToolResult;
}

/** Runs the tool and writes its result. Synchronous where the tool is and nothing has to be waited for. */
export function performCall(permitted: PermittedCall): PerformedCall | Promise<PerformedCall> {
  const { plan, environment } = permitted;
  const mayGoOn = environment.onAsyncResult !== undefined;
  return plan.isShared || mayGoOn || environment.policies ? performOpen(permitted) : performPlain(permitted);
}

/** Nothing to wait for before the body runs, and nothing that may follow its answer. */
function performPlain(permitted: PermittedCall): PerformedCall | Promise<PerformedCall> {
  const { tool, call, environment, log } = permitted;
  const context = tool.ignoresContext ? undefined : new CallContext({ call, tool, environment, log });
  const ended = run(permitted, context);
  return ended instanceof Promise
    ? ended.then((later) => finish(permitted, context, later))
    : finish(permitted, context, ended);
}

function finish(
  permitted: PermittedCall,
  context: CallContext | undefined,
  ended: Ended,
): PerformedCall | Promise<PerformedCall> {
  const performed = writeEnding(permitted, ended);
  logEnd(permitted, performed);
  if (!context?.isOpen) return performed;
  return closeContext(permitted, context).then(() => performed);
}

async function closeContext({ log }: PermittedCall, context: CallContext): Promise<void> {
  try {
    await context.close();
  } catch (error) {
    log.ignored('A call’s container could not be disposed', { error });
  }
}

/** A call that waits for its turn or its permission, or whose work may outlive its answer. */
async function performOpen(permitted: PermittedCall): Promise<PerformedCall> {
  const open = new OpenCall(permitted);
  const performed = started(open, writeEnding(permitted, await runOpen(permitted, open)));
  logEnd(permitted, performed);
  await open.answer(performed.result);
  return performed;
}

async function runOpen(permitted: PermittedCall, open: OpenCall): Promise<Ended> {
  const { tool, checked, environment } = permitted;
  const request = { tool, arguments: checked, context: open.context };
  const refusal = await askPolicies(environment.policies ?? [], request);
  if (refusal !== undefined) return { how: 'refused', reason: refusal };
  try {
    if (!(await open.begin())) return { how: 'aborted' };
  } catch (error) {
    return { how: 'threw', error };
  }
  return run(permitted, open.context);
}

function run(
  { tool, args, environment, log }: PermittedCall,
  context: CallContext | undefined,
): Ended | Promise<Ended> {
  return runTool({
    tool,
    args,
    context,
    timeoutMs: tool.timeoutMs ?? environment.toolTimeoutMs,
    signal: environment.scope.signal,
    onLate: ({ how }) => log.ignored('A tool ended after its call had been answered', { how }),
  });
}

/** A success with a completion to come is a start, also where the tool worded its own acknowledgement. */
function started(open: OpenCall, performed: PerformedCall): PerformedCall {
  const { status, result } = performed;
  if (status !== 'success' || !open.awaitsCompletion(result)) return performed;
  return { status: 'started', result: result.async ? result : new ToolResult({ ...result, async: true }) };
}

function logEnd({ log, since }: PermittedCall, { status, result }: PerformedCall): void {
  if (!log.isRead) return;
  const durationMs = performance.now() - since;
  if (status === 'refused') log.refused(result.forLLM);
  else if (result.async) log.startedAsync(durationMs);
  else log.ended(result, durationMs);
}
