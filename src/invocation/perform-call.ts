import type { CallStatus } from '../contract/call-record.js';
import { errorResult, ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { OpenCall } from './open-call.js';
import type { PermittedCall } from './permitted-call.js';
import { type Ended, runTool } from './run-tool.js';
import { writeFailure, writeResult } from './write-result.js';

/** What came of it. */
export interface PerformedCall {
  readonly status: CallStatus;
  readonly result: ToolResult;
}

/** Runs the tool and writes its result. */
export async function performCall(permitted: PermittedCall): Promise<PerformedCall> {
  const { log, since } = permitted;
  const open = new OpenCall(permitted);
  const performed = started(open, write(permitted, await run(permitted, open)));
  if (performed.result.async) log.startedAsync(performance.now() - since);
  else log.ended(performed.result, performance.now() - since);
  await open.answer(performed.result);
  return performed;
}

/** A success with a completion to come is a start, also where the tool worded its own acknowledgement. */
function started(open: OpenCall, performed: PerformedCall): PerformedCall {
  const { status, result } = performed;
  if (status !== 'success' || !open.awaitsCompletion(result)) return performed;
  return { status: 'started', result: result.async ? result : new ToolResult({ ...result, async: true }) };
}

async function run({ tool, args, environment, log }: PermittedCall, open: OpenCall): Promise<Ended> {
  try {
    if (!(await open.begin())) return { how: 'aborted' };
  } catch (error) {
    return { how: 'threw', error };
  }
  return runTool({
    tool,
    args,
    context: open.context,
    timeoutMs: tool.timeoutMs ?? environment.toolTimeoutMs,
    signal: environment.scope.signal,
    onLate: ({ how }) => log.ignored('A tool ended after its call had been answered', { how }),
  });
}

function write({ tool, environment }: PermittedCall, ended: Ended): PerformedCall {
  switch (ended.how) {
    case 'returned': {
      const result = writeResult(tool.name, ended.value, environment.describeError);
      return { status: result.isError ? 'error' : 'success', result };
    }
    case 'threw': {
      const status = environment.scope.signal?.aborted ? 'aborted' : 'error';
      return { status, result: writeFailure(tool.name, ended.error, environment.describeError) };
    }
    case 'timed_out': {
      const message = `The tool '${tool.name}' timed out after ${ended.timeoutMs} ms.`;
      return {
        status: 'timed_out',
        result: errorResult(message).withError(new ToolwrightError('ToolTimedOut', message)),
      };
    }
    case 'aborted':
      return { status: 'aborted', result: abortedResult(tool.name) };
  }
}

/** The answer to a call that an abort of the run left open. */
export function abortedResult(tool: string): ToolResult {
  const message = `The run was aborted before the tool '${tool}' had finished.`;
  return errorResult(message).withError(new ToolwrightError('RunAborted', message));
}
