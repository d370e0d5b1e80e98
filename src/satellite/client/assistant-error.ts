import type { ChatErrorCode } from '../chat-protocol.js';

/**
 * Why an assistant gave no reply: its own code, `unreachable` where none came through, `timed_out` and
 * `reply_too_large` beyond the client's limits, or `invalid_response` for an answer that is not of the protocol.
 *
 * @example
 * ```ts
 * const outcome = await satellite.send('Is it raining in Lisbon?');
 * if (outcome.status === 'failed' && outcome.error.cause instanceof AssistantError)
 *   console.error(outcome.error.cause.code, outcome.error.cause.status);
 * ```
 */
export class AssistantError extends Error {
  override readonly name = 'AssistantError';
  readonly code: ChatErrorCode | 'unreachable' | 'timed_out' | 'reply_too_large' | 'invalid_response';
  /** HTTP status, where there was one. */
  readonly status?: number;
  /** What the server asked to wait before the next try. */
  readonly retryAfterMs?: number;

  constructor(
    code: AssistantError['code'],
    message: string,
    details: Pick<AssistantError, 'status' | 'retryAfterMs' | 'cause'> = {},
  ) {
    super(message, { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
  }
}
