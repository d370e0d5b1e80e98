const BRAND = Symbol.for('toolwright.RetryToolCall');

/**
 * Thrown by a tool that wants the model to call it again, differently. The hint goes to the model as it is;
 * like rejected arguments, it counts against `maxRetries`.
 *
 * @example
 * ```ts
 * const found = ['cus_1', 'cus_2'];
 * if (found.length > 1) throw new RetryToolCall(`${found.length} customers have that name; give the id.`);
 * ```
 */
export class RetryToolCall extends Error {
  override readonly name = 'RetryToolCall';

  /** Whether something was thrown to ask for another call, also by another copy of this package. */
  static is(value: unknown): value is RetryToolCall {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

Object.defineProperty(RetryToolCall.prototype, BRAND, { value: true });
