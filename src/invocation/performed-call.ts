import type { CallStatus } from '../contract/call-record.js';
import type { Suspension } from '../contract/suspension.js';
import type { ToolResult } from '../contract/tool-result.js';

/** What came of a call. */
export interface PerformedCall {
  readonly status: CallStatus;
  /** Of a suspended call: the error that stands for it where nobody can be asked. */
  readonly result: ToolResult;
  /** Only with status `suspended`. */
  readonly suspension?: Suspension;
  /** Of the work that completes later. */
  readonly taskId?: string;
}
