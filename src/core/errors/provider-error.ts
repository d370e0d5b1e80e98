import { isRecord } from '../kernel/json.js';

const BRAND = Symbol.for('toolwright.ProviderError');

/** What is known of a failed request besides its message. */
export interface ProviderErrorFacts extends ErrorOptions {
  /** The status that the server answered with, where it answered. */
  readonly status?: number;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** How long the server asked to wait first, in milliseconds. */
  readonly retryAfterMs?: number;
  /** How often the provider has tried by itself; default: once. */
  readonly tries?: number;
}

/**
 * What a provider throws where no reply could be had: one line that says what happened and what to do, with the error
 * of its client as the `cause`, and whether to try again. A provider of one's own may throw any error; where that has
 * these fields, they are heeded just as well.
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

  /** Whether a value is such an error, also one made by another copy of this package. */
  static is(value: unknown): value is ProviderError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

Object.defineProperty(ProviderError.prototype, BRAND, { value: true });

/** Codes of connections that may be better the next time; a wrong address or certificate will not. */
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

/** Whether an error, or one that caused it, is that of a connection that was lost or not made this time. */
export function isConnectionLost(error: unknown): boolean {
  let link = error;
  // By shape and not by `instanceof`: the errors of `fetch` may belong to another realm. A chain may be a ring.
  for (let depth = 0; isRecord(link) && depth < 8; depth += 1) {
    if (PASSING_CODES.has(link.code)) return true;
    link = link.cause;
  }
  return false;
}
