import { errorResult, ToolResult } from '../../contract/tool-result.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { errorMessage } from '../../invocation/error-message.js';
import { failedResult } from '../../invocation/failed-result.js';

/** What an exception filter answered, as text for the model. */
export function filteredText(answer: unknown): string {
  if (ToolResult.is(answer)) return answer.forLLM;
  return typeof answer === 'string' ? answer : JSON.stringify(answer);
}

/** A filter's answer stands for a failure, unless it says otherwise with a `ToolResult` of its own. */
export function filteredResult(answer: unknown, exception: unknown): ToolResult {
  if (ToolResult.is(answer)) return answer;
  const error = new ToolwrightError('ToolExecutionFailed', errorMessage(exception), { cause: exception });
  return errorResult(filteredText(answer)).withError(error);
}

/** A failure of what stands around a method, after the method was begun. */
export interface FailedAround {
  readonly tool: string;
  readonly progress: 'begun' | 'returned';
  /** What the model is told of it. */
  readonly text: string;
  readonly exception: unknown;
}

/** A result that does not let the model think that nothing has happened. */
export function failedAround({ tool, progress, text, exception }: FailedAround): ToolResult {
  const happened =
    progress === 'returned'
      ? `The tool '${tool}' ran, but its result was lost afterwards: ${text}\nDo not repeat the call: its work is done.`
      : `The tool '${tool}' had begun when its call failed: ${text}\nDo not repeat the call without looking: its work may be done.`;
  return failedResult('ToolExecutionFailed', happened, exception);
}
