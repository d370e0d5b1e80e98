import type { CallRecord } from '../../contract/call-record.js';
import type { ToolRequest } from '../../detection/parse-tool-request.js';
import type { ToolwrightError } from '../../errors/toolwright-error.js';

/** What every outcome tells. */
interface Progress {
  /** What `resume` and the next `send` take. */
  readonly conversationId: string;
  /** The assistant's words; `''` unless `completed`. */
  readonly content: string;
  /** Requests that were answered. */
  readonly iterations: number;
  /** Every call that was made here, failed ones included, in order. */
  readonly toolCalls: readonly CallRecord[];
}

/**
 * How a satellite's work ended: `completed` with a plain answer; `limit` after `maxIterations` requests, with the
 * tool request still pending on the server; `aborted`; or `failed`, with an {@link AssistantError} as the error's
 * cause. After all but `completed`, `resume` goes on where it was.
 */
export type SatelliteOutcome =
  | (Progress & { readonly status: 'completed'; readonly finishReason: string })
  | (Progress & { readonly status: 'limit'; readonly pending: ToolRequest; readonly error: ToolwrightError })
  | (Progress & { readonly status: 'aborted' | 'failed'; readonly error: ToolwrightError });
