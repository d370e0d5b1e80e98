import type { ToolResult } from '../contract/tool-result.js';
import { errorMessage } from '../invocation/error-message.js';

/** What the model gets of a result: `forLLM`, or the error's text where that is empty. */
export function resultText({ forLLM, error }: ToolResult): string {
  return forLLM !== '' || error === undefined || error === null ? forLLM : errorMessage(error);
}
