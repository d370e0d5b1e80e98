import { describeFaults } from '../checking/describe-faults.js';
import { RetryToolCall } from '../contract/retry-tool-call.js';
import type { ToolResult } from '../contract/tool-result.js';
import { cutResult } from './cut-result.js';
import { failedResult } from './failed-result.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';
import type { Ended } from './run-tool.js';
import { writeFailure, writeResult } from './write-result.js';

/** What the writing of a result depends on. */
export type WritingParts = Pick<PermittedCall, 'tool' | 'plan' | 'environment'>;

/** How a tool's body ended, as the result and status of its call: the last step of the staircase. */
export function writeEnding(permitted: WritingParts, ended: Ended): PerformedCall {
  const { tool, environment } = permitted;
  switch (ended.how) {
    case 'returned':
      return writeReturned(permitted, ended.value);
    case 'threw': {
      if (RetryToolCall.is(ended.error)) {
        return {
          status: 'rejected',
          result: failedResult('InvalidArguments', ended.error.message, ended.error),
        };
      }
      const status = environment.scope.signal?.aborted ? 'aborted' : 'error';
      return { status, result: writeFailure(tool.name, ended.error, environment.describeError) };
    }
    case 'timed_out':
      return {
        status: 'timed_out',
        result: failedResult(
          'ToolTimedOut',
          `The tool '${tool.name}' timed out after ${ended.timeoutMs} ms.`,
        ),
      };
    case 'refused':
      return {
        status: 'refused',
        result: failedResult('ToolRefused', `The tool '${tool.name}' was refused: ${ended.reason}`),
      };
    case 'aborted':
      return { status: 'aborted', result: abortedResult(tool.name) };
  }
}

/** The answer to a call that an abort of the run left open. */
export function abortedResult(tool: string): ToolResult {
  return failedResult('RunAborted', `The run was aborted before the tool '${tool}' had finished.`);
}

function writeReturned({ tool, plan, environment }: WritingParts, value: unknown): PerformedCall {
  const written = writeResult(tool.name, value, environment.describeError);
  if (written.isError) return { status: 'error', result: written };
  const faults = plan.checkResult?.(structured(value)) ?? [];
  if (faults.length > 0) {
    const message = describeFaults(tool.name, faults).replace(
      'Validation failed for',
      'A broken result came from',
    );
    return { status: 'error', result: failedResult('InvalidResult', message) };
  }
  const limit = tool.maxResultChars ?? environment.maxResultChars;
  return { status: 'success', result: limit === undefined ? written : cutResult(written, limit) };
}

/** What a declared output schema speaks of: the value itself, or the structured part of a worded result. */
function structured(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'details' in value && value.details !== undefined
    ? value.details
    : value;
}
