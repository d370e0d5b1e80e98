import { errorResult, ToolResult } from '../../contract/tool-result.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { errorMessage } from '../../invocation/error-message.js';

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
