import type { CallStatus } from '../contract/call-record.js';
import type { ToolResult } from '../contract/tool-result.js';

/** What came of a call. */
export interface PerformedCall {
  readonly status: CallStatus;
  readonly result: ToolResult;
}
