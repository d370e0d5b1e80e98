import type { JsonObject } from './json-schema.js';
import type { GivenAnswer } from './suspension.js';
import type { ToolResult } from './tool-result.js';

/**
 * How a call ended: `success`, `error` (the tool failed), `rejected` (unknown tool or unusable arguments:
 * the model may try again), `refused` (not allowed here), `timed_out`, `aborted`, `not_run` (the reply was
 * cut off), `started` (goes on in the background), `suspended` (waits for somebody's answer).
 */
export type CallStatus =
  | 'success'
  | 'error'
  | 'rejected'
  | 'refused'
  | 'timed_out'
  | 'aborted'
  | 'not_run'
  | 'started'
  | 'suspended';

/** The history of one call: what was asked, what was made of it, and what came of it. */
export interface CallRecord {
  readonly id: string;
  readonly name: string;
  /** As the model sent them: an object or text. */
  readonly rawArguments: unknown;
  /** After the check, in JSON form; absent where there was nothing usable. */
  readonly arguments?: JsonObject;
  /** What had to be mended before the arguments could be used. */
  readonly repairs: readonly string[];
  /** Paths of keys that the schema does not know and that were taken away. */
  readonly removed: readonly string[];
  /** The how-manieth try of the model at this tool this was; 1 is the first. */
  readonly attempts: number;
  readonly durationMs: number;
  readonly status: CallStatus;
  /** Id of the work that the call started and that will complete (`TaskQueue`). */
  readonly taskId?: string;
  /** Who gave the answer that the call waited for, where the resume said who (`answeredBy`); of several, the last. */
  readonly answeredBy?: unknown;
  /** Who gave each of the answers, in the order in which they came. */
  readonly answers?: readonly GivenAnswer[];
  readonly result: ToolResult;
}
