/** An integer that may have more digits than a number keeps; of fewer, every digit is kept. */
const LONG_INTEGER = /^-?\d{16,}$/;
const LONG_RUN = /\d{16}/;

/** What a JSON text says, to the digit. */
export interface ExactJson {
  readonly value: unknown;
  /** An integer that a number would change is the text that it was written as. */
  readonly hasDigitsAsText: boolean;
}

/**
 * Reads JSON without losing digits: an integer that would be another one as a number is kept as text, for
 * whoever takes text; a check for numbers refuses it.
 *
 * @throws SyntaxError where the text is no JSON.
 */
export function readExactJson(text: string): ExactJson {
  const value: unknown = JSON.parse(text);
  return LONG_RUN.test(text) ? readAgain(text, value) : { value, hasDigitsAsText: false };
}

/** The value alone of {@link readExactJson}. */
export function parseExactJson(text: string): unknown {
  return readExactJson(text).value;
}

/** With the source of each number: that takes several times as long, and only few texts need it. */
function readAgain(text: string, value: unknown): ExactJson {
  let hasDigitsAsText = false;
  const revive = (_key: string, part: unknown, context?: { readonly source?: string }): unknown => {
    if (typeof part !== 'number' || context?.source === undefined) return part;
    const exact = exactNumber(context.source);
    hasDigitsAsText ||= exact !== part;
    return exact;
  };
  try {
    const exact: unknown = JSON.parse(text, revive);
    return { value: exact, hasDigitsAsText };
  } catch {
    // Nested too deep to be gone through: nobody takes such arguments.
    return { value, hasDigitsAsText: false };
  }
}

/** The number that a literal stands for, or the literal where the number would be written with other digits. */
export function exactNumber(literal: string): number | string {
  const value = Number(literal);
  if (Number.isSafeInteger(value) || !LONG_INTEGER.test(literal) || String(value) === literal) return value;
  return Number.isFinite(value) && BigInt(value).toString() === literal ? value : literal;
}

/** Whether a text is an integer of which a number would lose digits. */
export function losesDigits(value: unknown): value is string {
  return typeof value === 'string' && LONG_INTEGER.test(value) && typeof exactNumber(value) === 'string';
}
