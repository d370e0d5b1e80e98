import { isRecord } from './is-record.js';

/** What one option may be. */
export interface OptionRule {
  accepts(value: unknown): boolean;
  /** What to write behind its name. */
  readonly fix: string;
  readonly isRequired?: boolean;
  /** It protects something: a variable that is not set must not switch it off, so `undefined` is refused. */
  readonly isProtecting?: boolean;
  /** Its value is not to be in a message. */
  readonly isSecret?: boolean;
  /** Names the wrong places within a wrong value; nothing where all of it is wrong. */
  explain?(value: unknown, option: string): readonly OptionFault[];
}

/** One option that is wrong. */
export interface OptionFault {
  /** Its path: `loopGuard.endAt`. */
  readonly option: string;
  /** What is wrong, as a sentence without its full stop. */
  readonly problem: string;
  /** What to write instead. */
  readonly fix: string;
}

export const ANYTHING: OptionRule = { accepts: () => true, fix: '…' };
export const BOOLEAN: OptionRule = { accepts: (value) => typeof value === 'boolean', fix: 'true or false' };
export const TEXT: OptionRule = { accepts: (value) => typeof value === 'string', fix: 'a string' };
/** A text that says something. */
export const FILLED_TEXT: OptionRule = {
  accepts: (value) => typeof value === 'string' && value.trim() !== '',
  fix: 'a string that is not empty',
};
export const FUNCTION: OptionRule = { accepts: (value) => typeof value === 'function', fix: 'a function' };
export const RECORD: OptionRule = { accepts: isRecord, fix: '{ … }' };
export const LIST: OptionRule = { accepts: Array.isArray, fix: '[…]' };
export const NUMBER: OptionRule = { accepts: (value) => Number.isFinite(value), fix: 'a number' };
export const WHOLE: OptionRule = {
  accepts: (value) => Number.isInteger(value) && Number(value) >= 0,
  fix: 'a whole number, 0 or more',
};
/** `Infinity` is no limit. */
export const LIMIT: OptionRule = orInfinity(WHOLE);
/** How many there may be where none would be no use. */
export const COUNT: OptionRule = {
  accepts: (value) => WHOLE.accepts(value) && value !== 0,
  fix: 'a whole number, 1 or more',
};
export const COUNT_LIMIT: OptionRule = orInfinity(COUNT);
export const MILLISECONDS: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 1,
  fix: 'a number, 1 or more, or Infinity',
};
/** A wait that may be none, and that ends. */
export const PAUSE: OptionRule = {
  accepts: (value) => Number.isFinite(value) && Number(value) >= 0,
  fix: 'a number, 0 or more',
};
export const SIGNAL: OptionRule = {
  accepts: (value) => value instanceof AbortSignal,
  fix: 'an AbortSignal: new AbortController().signal',
};
export const LOGGER: OptionRule = withMethods(
  ['debug', 'info', 'warn', 'error'],
  'an object with debug, info, warn and error: console',
);

/** Where a server is. */
export const ADDRESS: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^https?:\/\/[^\s/]/i.test(value) && URL.canParse(value),
  fix: "an address with its scheme: 'http://127.0.0.1:8080/v1'",
};
/** Headers of requests; which of them are wrong is told, and never their values. */
export const HEADERS: OptionRule = {
  accepts: (value) => isRecord(value) && Object.entries(value).every(isHeader),
  fix: "{ 'x-team': 'shop' }",
  isSecret: true,
  explain: (value, option) => {
    const wrong = isRecord(value) ? Object.entries(value).filter((entry) => !isHeader(entry)) : [];
    return wrong.map(([name, given]) => ({
      option: `${option}.${name}`,
      problem:
        typeof given === 'string'
          ? `${option} has '${name}', which is no name of a header, or whose text no header can have`
          : `${option} has '${name}', whose value is ${given === null ? 'null' : `a ${typeof given}`}`,
      fix: `${option}: { 'x-team': 'shop' }, in which names and values are texts on one line`,
    }));
  },
};

/** What HTTP allows: a token for a name, and one line of Latin-1 for a value. */
function isHeader([name, value]: readonly [string, unknown]): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof value === 'string' && /^[\t -~\x80-\xff]*$/.test(value);
}

/** One of some texts. */
export function oneOf(...values: readonly string[]): OptionRule {
  return {
    accepts: (value) => values.some((known) => known === value),
    fix: values.map((value) => `'${value}'`).join(' or '),
  };
}

/** Either of two rules. */
export function either(rule: OptionRule, other: OptionRule): OptionRule {
  return {
    accepts: (value) => rule.accepts(value) || other.accepts(value),
    fix: `${rule.fix}, or ${other.fix}`,
    explain: (value, option) => rule.explain?.(value, option) ?? other.explain?.(value, option) ?? [],
  };
}

/** One value, such as `false`. */
export function exactly(wanted: unknown): OptionRule {
  return {
    accepts: (value) => value === wanted,
    fix: typeof wanted === 'string' ? `'${wanted}'` : String(wanted),
  };
}

/** An object by what it can do: it may come from another copy of this package. */
export function withMethods(methods: readonly string[], fix: string): OptionRule {
  return {
    accepts: (value) => {
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
      for (const name of methods)
        if (typeof (value as Readonly<Record<string, unknown>>)[name] !== 'function') return false;
      return true;
    },
    fix,
  };
}

/** An instance of a class. */
export function instanceOf(wanted: abstract new (...args: never) => object, fix: string): OptionRule {
  return { accepts: (value) => value instanceof wanted, fix };
}

/** It has to be given. */
export function required(rule: OptionRule): OptionRule {
  return { ...rule, isRequired: true };
}

/** It protects something: where its name is given, its value must be there. */
export function protecting(rule: OptionRule): OptionRule {
  return { ...rule, isProtecting: true };
}

/** Its value stays out of messages. */
export function secret(rule: OptionRule): OptionRule {
  return { ...rule, isSecret: true };
}

function orInfinity(rule: OptionRule): OptionRule {
  return either(rule, exactly(Number.POSITIVE_INFINITY));
}
