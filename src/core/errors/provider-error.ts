import { causesOf } from '../kernel/error-message.js';
import { isObject, isRecord } from '../kernel/json.js';

const BRAND = Symbol.for('toolwright.ProviderError');

/** Facts about a failed request, in addition to its message. */
export interface ProviderErrorFacts extends ErrorOptions {
  /** The HTTP status, if the server answered. */
  readonly status?: number;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** How long the server asked to wait first, in milliseconds. */
  readonly retryAfterMs?: number;
  /** How often the provider has already tried; default: once. */
  readonly tries?: number;
}

/**
 * Thrown by a provider that received no reply. It has a one-line message with the problem and the fix, the error of
 * the client as `cause`, and whether to retry. Your own provider may throw any error; if that has these fields, they
 * are used too.
 *
 * @example
 * ```ts
 * const flaky: LLMProvider = {
 *   async chat() {
 *     throw new ProviderError('the gateway is busy', { status: 503, retryable: true, retryAfterMs: 2_000 });
 *   },
 * };
 * ```
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly status?: number;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  readonly tries?: number;

  constructor(message: string, { status, retryable, retryAfterMs, tries, ...options }: ProviderErrorFacts) {
    super(message, options);
    this.retryable = retryable;
    if (status !== undefined) this.status = status;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (tries !== undefined) this.tries = tries;
  }

  /** Whether a value is such an error, including errors of another copy of this package. */
  static is(value: unknown): value is ProviderError {
    return isObject(value) && BRAND in value;
  }
}

Object.defineProperty(ProviderError.prototype, BRAND, { value: true });

/** Codes of connection failures that may be temporary, unlike a wrong address or certificate. */
const PASSING_CODES: ReadonlySet<unknown> = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_SOCKET',
]);

/** Whether an error, or a cause of it, is a connection that was lost or could not be made this time. */
export function isConnectionLost(error: unknown): boolean {
  return causesOf(error).some((cause) => isRecord(cause) && PASSING_CODES.has(cause.code));
}
