/** What one option may be. */
export interface OptionRule {
  accepts(value: unknown): boolean;
  /** What to write behind its name. */
  readonly fix: string;
}

export const ANYTHING: OptionRule = { accepts: () => true, fix: '…' };
export const BOOLEAN: OptionRule = { accepts: (value) => typeof value === 'boolean', fix: 'true or false' };
export const TEXT: OptionRule = { accepts: (value) => typeof value === 'string', fix: 'a string' };
export const LOGGER: OptionRule = {
  accepts: (value) => typeof value === 'object' && value !== null,
  fix: 'an object with debug, info, warn and error: console',
};
export const FUNCTION: OptionRule = { accepts: (value) => typeof value === 'function', fix: 'a function' };

export function oneOf(...values: readonly string[]): OptionRule {
  return {
    accepts: (value) => values.some((one) => one === value),
    fix: values.map((value) => `'${value}'`).join(' or '),
  };
}

export const WHOLE: OptionRule = {
  accepts: (value) => Number.isInteger(value) && Number(value) >= 0,
  fix: 'a whole number, 0 or more',
};
/** `Infinity` is no limit. */
export const LIMIT: OptionRule = {
  accepts: (value) => WHOLE.accepts(value) || value === Number.POSITIVE_INFINITY,
  fix: `${WHOLE.fix}, or Infinity`,
};
export const MILLISECONDS: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 1,
  fix: 'a number, 1 or more, or Infinity',
};
