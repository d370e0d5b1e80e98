import type { ToolResult } from '../contract/tool-result.js';
import { failedResult } from './failed-result.js';

/** The completion of work that ended with its process: what the call gets in the next one. */
export function interruptedResult(tool: string): ToolResult {
  return failedResult(
    'TaskInterrupted',
    `The work of the tool '${tool}' was interrupted: the process ended before it was done. What it had done by then stays done.`,
  );
}
