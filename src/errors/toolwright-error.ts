import { ERROR_TABLE, type ErrorName } from './error-table.js';

const BRAND = Symbol.for('toolwright.ToolwrightError');

/**
 * An error of the framework. `name` and `code` are those of the table in `docs/errors.md`.
 *
 * @example
 * ```ts
 * if (ToolwrightError.is(run.error) && run.error.code === 504) askTheUserToGoOn();
 * ```
 */
export class ToolwrightError extends Error {
  declare readonly name: ErrorName;
  /** The number of the error: 500 for `ToolNotFound`, … */
  readonly code: number;

  constructor(name: ErrorName, message: string, options?: ErrorOptions) {
    super(message, options);
    // Plain assignment fails where `Error.prototype` is frozen.
    Object.defineProperty(this, 'name', {
      value: name,
      configurable: true,
      enumerable: true,
      writable: true,
    });
    this.code = ERROR_TABLE[name].code;
  }

  /** Whether a value is an error of the framework, also one made by another copy of this package. */
  static is(value: unknown): value is ToolwrightError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

Object.defineProperty(ToolwrightError.prototype, BRAND, { value: true });
