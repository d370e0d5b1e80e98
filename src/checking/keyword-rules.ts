import { isRecord } from '../kernel/is-record.js';
import type { KeywordValue } from '../schema/keywords.js';

/** What a keyword's value must be, its own schemas apart. */
interface KeywordRule {
  accepts(value: unknown): boolean;
  /** Continues "must be …". */
  readonly what: string;
}

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] as const;

const ANYTHING: KeywordRule = { accepts: () => true, what: 'anything' };

/** By what a keyword takes. Of schemas only the holder is judged here. */
export const KEYWORD_RULES: Readonly<Record<KeywordValue, KeywordRule>> = {
  'a schema': { accepts: isSchema, what: 'a schema: an object, true or false' },
  'a list of schemas': { accepts: isFilled, what: 'a list of schemas' },
  'schemas by name': { accepts: isRecord, what: 'an object of schemas' },
  'schemas by pattern': { accepts: isRecord, what: 'an object of schemas' },
  'a schema or a list of schemas': {
    accepts: (value) => isSchema(value) || isFilled(value),
    what: 'a schema, or a list of schemas in draft 7',
  },
  'schemas or lists of names, by name': { accepts: isRecord, what: 'an object of schemas or lists of names' },
  anything: ANYTHING,
  'a list': { accepts: Array.isArray, what: 'a list' },
  'a list of values': { accepts: isFilled, what: 'a list of at least one value' },
  text: { accepts: (value) => typeof value === 'string', what: 'a string' },
  'a fragment': {
    accepts: (value) => typeof value === 'string' && value.startsWith('#'),
    what: 'a reference within the schema, which begins with #',
  },
  'a number': { accepts: Number.isFinite, what: 'a number' },
  'a number above 0': {
    accepts: (value) => Number.isFinite(value) && Number(value) > 0,
    what: 'a number above 0',
  },
  'a count': {
    accepts: (value) => Number.isInteger(value) && Number(value) >= 0,
    what: 'a whole number, 0 or more',
  },
  'true or false': { accepts: (value) => typeof value === 'boolean', what: 'true or false' },
  false: { accepts: (value) => value === false, what: 'false: arguments are checked at once' },
  names: { accepts: isNameList, what: 'a list of different names' },
  'names by name': {
    accepts: (value) => isRecord(value) && Object.values(value).every(isNameList),
    what: 'an object of lists of different names',
  },
  'a pattern': { accepts: isPattern, what: 'a regular expression' },
  types: { accepts: areTypes, what: `a type or a list of different types (${TYPES.join(', ')})` },
};

/** Whether every item is a string that stands there once. */
export function isNameList(value: unknown): boolean {
  if (!Array.isArray(value) || new Set(value).size !== value.length) return false;
  return value.every((name) => typeof name === 'string');
}

/** With or without Unicode: older tools wrote patterns that do not parse with it, newer ones the other way round. */
export function isPattern(value: unknown): boolean {
  return typeof value === 'string' && (compiles(value, 'u') || compiles(value, ''));
}

/** Whether something stands where a schema may. */
export function isSchema(value: unknown): boolean {
  return isRecord(value) || typeof value === 'boolean';
}

function compiles(pattern: string, flags: string): boolean {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch {
    return false;
  }
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function areTypes(value: unknown): boolean {
  const types: readonly unknown[] = TYPES;
  if (!Array.isArray(value)) return types.includes(value);
  return (
    isFilled(value) && new Set(value).size === value.length && value.every((type) => types.includes(type))
  );
}
