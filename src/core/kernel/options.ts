import { ofAnotherCopy } from './error-message.js';
import { type Fields, isObject, isPlainObject, isRecord, plainJson } from './json.js';
import { misspeltName, nearestNames } from './nearest-name.js';
import { visibleLine } from './visible-text.js';

/** The options of a function or class. */
export interface OptionTable {
  /** The function or class: `runToolLoop`. */
  readonly of: string;
  readonly rules: ReadonlyMap<string, OptionRule>;
  readonly required: readonly string[];
  /** Names that users often write instead, and the fix. */
  readonly meant: Readonly<Record<string, string>>;
}

/** A rule for each option of a type: a new option of the type requires a rule. */
export type RulesOf<Options> = { readonly [Name in keyof Required<Options>]: OptionRule };

const NO_FAULTS: readonly OptionFault[] = [];

/** Creates an option table. */
export function optionTable<Options>(
  of: string,
  rules: RulesOf<Options>,
  meant: Readonly<Record<string, string>> = {},
): OptionTable {
  const entries = Object.entries<OptionRule>(rules);
  const required = entries.filter(([, rule]) => rule.isRequired).map(([name]) => name);
  return { of, rules: new Map(entries), required, meant };
}

/**
 * Lists every problem in options. Unknown options are problems too: a misspelled limit or policy must not be ignored
 * silently.
 */
export function optionFaults(given: unknown, table: OptionTable): readonly OptionFault[] {
  return areRight(given, table) ? NO_FAULTS : faultsIn(given, table, '');
}

/** The same for objects that may have other fields. */
export function wrongValues(given: object, table: OptionTable, path = ''): readonly OptionFault[] {
  let faults: OptionFault[] | undefined;
  for (const [name, rule] of table.rules) {
    const value = (given as Fields)[name];
    if (isFine(rule, value, name in given)) continue;
    faults ??= [];
    faults.push(...describeWrong(path + name, value, rule));
  }
  return faults ?? NO_FAULTS;
}

/** Lists unknown names that are frequent mistakes, or probable typos of an option. */
export function mistakenNames(given: object, table: OptionTable, path = ''): readonly OptionFault[] {
  const others = Object.keys(given).filter((name) => !table.rules.has(name));
  if (others.length === 0) return NO_FAULTS;
  const known = Array.from(table.rules.keys());
  const mistaken = others.filter(
    (name) => Object.hasOwn(table.meant, name) || misspeltName(name, known) !== undefined,
  );
  return mistaken.map((name) => describeUnknown(name, table, path));
}

/** Nested options. */
export function objectOf<Options>(
  rules: RulesOf<Options>,
  { fix, meant }: { readonly fix: string; readonly meant?: Readonly<Record<string, string>> },
): OptionRule {
  const table = optionTable<Options>('', rules, meant);
  const { required } = table;
  // Omits options that JSON Schema cannot express. If such an option is required, there is no schema.
  const properties: Record<string, Fields> = {};
  for (const [name, { schema }] of table.rules) if (schema) properties[name] = schema;
  const schema = {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  return {
    accepts: (value) => areRight(value, table),
    fix,
    schema: required.every((name) => Object.hasOwn(properties, name)) ? schema : undefined,
    explain: (value, option) => (isRecord(value) ? faultsIn(value, table, `${option}.`) : NO_FAULTS),
  };
}

/** A list whose entries follow a rule. */
export function listOf(rule: OptionRule, fix: string): OptionRule {
  return {
    accepts: (value) => Array.isArray(value) && value.every((entry) => rule.accepts(entry)),
    fix,
    schema: { type: 'array', ...(rule.schema ? { items: rule.schema } : { maxItems: 0 }) },
    explain: (value, option) => {
      if (!Array.isArray(value)) return NO_FAULTS;
      return value.flatMap((entry, index) =>
        rule.accepts(entry) ? [] : describeWrong(`${option}[${index}]`, entry, rule),
      );
    },
  };
}

/** Whether all options are valid, without allocations: the config is checked for every run. */
export function areRight(given: unknown, { rules, required }: OptionTable): boolean {
  if (!isRecord(given)) return false;
  for (const name in given) {
    const rule = rules.get(name);
    if (rule === undefined) {
      if (Object.hasOwn(given, name)) return false;
      continue;
    }
    const value = given[name];
    if (value === undefined ? rule.isProtecting : !rule.accepts(value)) return false;
  }
  for (const name of required) if (given[name] === undefined) return false;
  // A class may define its options as getters, which are not own keys.
  return (
    isPlainObject(given) ||
    [...rules].every(([name, rule]) => !(name in given) || isFine(rule, given[name], true))
  );
}

function isFine(rule: OptionRule, value: unknown, isGiven: boolean): boolean {
  if (value !== undefined) return rule.accepts(value);
  return !rule.isRequired && !(isGiven && rule.isProtecting);
}

function faultsIn(given: unknown, table: OptionTable, path: string): readonly OptionFault[] {
  if (!isRecord(given)) {
    const fix = `an object of options: ${Array.from(table.rules.keys()).slice(0, 3).join(', ')}, …`;
    return [{ option: '', problem: `${table.of} needs an object, not ${shown(given)}`, fix }];
  }
  const unknown = Object.keys(given).filter((name) => !table.rules.has(name));
  return [...wrongValues(given, table, path), ...unknown.map((name) => describeUnknown(name, table, path))];
}

function describeWrong(option: string, value: unknown, rule: OptionRule): readonly OptionFault[] {
  const within = value === undefined ? NO_FAULTS : (rule.explain?.(value, option) ?? NO_FAULTS);
  if (within.length > 0) return within;
  const fix = `${option}: ${rule.fix}`;
  if (value !== undefined)
    return [{ option, problem: `${option} is ${rule.isSecret ? hidden(value) : shown(value)}`, fix }];
  if (rule.isRequired) return [{ option, problem: `${option} is missing`, fix }];
  return [{ option, problem: `${option} is undefined`, fix: `${fix}; or no ${option} at all` }];
}

/** Names of our options in the AI SDK, OpenAI's SDKs and other frameworks. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['system', 'systemPrompt'],
  ['instructions', 'systemPrompt'],
  ['stopWhen', 'maxIterations'],
  ['maxSteps', 'maxIterations'],
  ['maxTurns', 'maxIterations'],
  ['abortSignal', 'signal'],
]);

/** The fix for another framework's name of an option in this table. */
function synonymFix(name: string, { rules, meant }: OptionTable, path: string): string | undefined {
  const own = SYNONYMS.get(name);
  if (own === undefined) return undefined;
  const rule = rules.get(own);
  if (rule !== undefined) return `${path}${own}: ${rule.fix}`;
  return Object.hasOwn(meant, own) ? meant[own] : undefined;
}

function describeUnknown(name: string, table: OptionTable, path: string): OptionFault {
  const { of, rules, meant } = table;
  const option = path + name;
  const problem = `${option} is not an option${of === '' ? '' : ` of ${of}`}`;
  const alias = Object.hasOwn(meant, name) ? meant[name] : synonymFix(name, table, path);
  if (alias !== undefined) return { option, problem, fix: alias };
  const known = Array.from(rules.keys());
  const near = nearestNames(name, known);
  if (near.length === 0) return { option, problem, fix: `one of ${known.join(', ')}` };
  const meantNames = near.map((other) => `\`${path}${other}\``).join(' or ');
  const fix = near.map((other) => `${path}${other}: ${rules.get(other)?.fix ?? '…'}`).join('; or ');
  return { option, problem: `${problem} (did you mean ${meantNames}?)`, fix };
}

const LONGEST_TEXT = 60;
const MOST_ENTRIES = 3;

/**
 * A short form of a value, on one line, with visible control characters. Strings inside objects are omitted: they may
 * be keys or passwords.
 */
export function shown(value: unknown): string {
  return visibleLine(inWords(value));
}

function inWords(value: unknown): string {
  if (typeof value === 'string') {
    const text = value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}…` : value;
    return `'${text.replaceAll("'", "\\'")}'`;
  }
  if (typeof value === 'function') return value.name === '' ? 'a function' : `the function ${value.name}`;
  if (!isObject(value)) return String(value);
  if (Array.isArray(value)) {
    const entries = value.slice(0, MOST_ENTRIES).map(shown);
    return `[${[...entries, ...(value.length > MOST_ENTRIES ? ['…'] : [])].join(', ')}]`;
  }
  if (value instanceof RegExp || value instanceof Date) return String(value);
  if (!isPlainObject(value)) return `an instance of ${value.constructor?.name || 'a class'}`;
  const entries = Object.entries(value);
  if (entries.length === 0) return '{}';
  const parts = entries
    .slice(0, MOST_ENTRIES)
    .map(([key, inner]) => (['boolean', 'number'].includes(typeof inner) ? `${key}: ${inner}` : key));
  return `{ ${parts.join(', ')}${entries.length > MOST_ENTRIES ? ', …' : ''} }`;
}

/** The type of a value, for messages that must not contain it. */
export function hidden(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'string') return `${isObject(value) ? 'an' : 'a'} ${typeof value}`;
  return value.trim() === '' ? 'empty' : `a string of ${value.length} characters`;
}

/** The rule for an option. */
export interface OptionRule {
  accepts(value: unknown): boolean;
  /** The rule as JSON Schema, if it can be expressed. */
  readonly schema?: Fields;
  /** The text after the option's name in the fix. */
  readonly fix: string;
  readonly isRequired?: boolean;
  /** The option protects something: an unset variable must not disable it, so `undefined` is refused. */
  readonly isProtecting?: boolean;
  /** The value must not be in messages. */
  readonly isSecret?: boolean;
  /** Names the invalid parts of an invalid value; empty if the whole value is invalid. */
  explain?(value: unknown, option: string): readonly OptionFault[];
}

/** An invalid option. */
export interface OptionFault {
  /** Its path: `loopGuard.endAt`. */
  readonly option: string;
  /** The problem, as a sentence without its full stop. */
  readonly problem: string;
  /** The text to write instead. */
  readonly fix: string;
}

export const ANY_VALUE: OptionRule = { accepts: () => true, fix: '…', schema: {} };
export const BOOLEAN: OptionRule = ofType('boolean', 'true or false');
export const TEXT: OptionRule = ofType('string', 'a string');
/** A text that is not blank. */
export const FILLED_TEXT: OptionRule = {
  accepts: (value) => typeof value === 'string' && value.trim() !== '',
  fix: 'a non-empty string',
  schema: { type: 'string', pattern: '\\S' },
};
export const FUNCTION: OptionRule = { accepts: (value) => typeof value === 'function', fix: 'a function' };
export const RECORD: OptionRule = { accepts: isRecord, fix: '{ … }', schema: { type: 'object' } };
/** A value that JSON can represent. */
export const JSON_VALUE: OptionRule = {
  accepts: (value) => plainJson(value) !== undefined,
  fix: "any JSON value: { clerk: 7 }, 'clerk 7'",
  schema: {},
};
export const LIST: OptionRule = { accepts: Array.isArray, fix: '[…]', schema: { type: 'array' } };
export const NUMBER: OptionRule = {
  accepts: (value) => Number.isFinite(value),
  fix: 'a number',
  schema: { type: 'number' },
};
export const WHOLE: OptionRule = {
  accepts: (value) => Number.isInteger(value) && Number(value) >= 0,
  fix: 'a whole number, 0 or more',
  schema: { type: 'integer', minimum: 0 },
};
/** `Infinity` means no limit. */
export const LIMIT: OptionRule = orInfinity(WHOLE);
/** A whole number of at least 1. */
export const COUNT: OptionRule = {
  accepts: (value) => WHOLE.accepts(value) && value !== 0,
  fix: 'a whole number, 1 or more',
  schema: { type: 'integer', minimum: 1 },
};
export const COUNT_LIMIT: OptionRule = orInfinity(COUNT);
export const MILLISECONDS: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 1,
  fix: 'a number, 1 or more, or Infinity',
  schema: { type: 'number', minimum: 1 },
};
/** A finite time, which may be 0. */
export const PAUSE: OptionRule = {
  accepts: (value) => Number.isFinite(value) && Number(value) >= 0,
  fix: 'a number, 0 or more',
  schema: { type: 'number', minimum: 0 },
};
export const SIGNAL: OptionRule = {
  accepts: (value) => value instanceof AbortSignal,
  fix: 'an AbortSignal: new AbortController().signal',
};
export const LOGGER: OptionRule = withMethods(
  ['debug', 'info', 'warn', 'error'],
  'an object with debug, info, warn and error: console',
);

/** The URL of a server. */
export const ADDRESS: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^https?:\/\/[^\s/]/i.test(value) && URL.canParse(value),
  fix: "a URL with its scheme: 'http://127.0.0.1:8080/v1'",
};
/** Headers of requests; errors name invalid headers, never their values. */
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
          ? `${option} has '${name}', whose name or value is not valid in a header`
          : `${option} has '${name}', whose value is ${hidden(given)}`,
      fix: `${option}: { 'x-team': 'shop' }, with names and values on one line`,
    }));
  },
};

/** The limits of HTTP: a token as name, and one line of Latin-1 as value. */
function isHeader([name, value]: readonly [string, unknown]): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof value === 'string' && /^[\t -~\x80-\xff]*$/.test(value);
}

/** One of several strings. */
export function oneOf(...values: readonly string[]): OptionRule {
  return {
    accepts: (value) => values.some((known) => known === value),
    fix: values.map((value) => `'${value}'`).join(' or '),
    schema: { enum: values },
  };
}

/** Either of two rules. */
export function either(rule: OptionRule, other: OptionRule): OptionRule {
  const schemas = [rule, other].flatMap(({ schema }) => (schema ? [schema] : []));
  return {
    schema: schemas.length > 1 ? { anyOf: schemas } : schemas[0],
    accepts: (value) => rule.accepts(value) || other.accepts(value),
    fix: `${rule.fix}, or ${other.fix}`,
    explain: (value, option) => rule.explain?.(value, option) ?? other.explain?.(value, option) ?? [],
  };
}

/** A single value, such as `false`. */
export function exactly(wanted: unknown): OptionRule {
  return {
    accepts: (value) => value === wanted,
    fix: typeof wanted === 'string' ? `'${wanted}'` : String(wanted),
    schema: plainJson(wanted) === wanted ? { const: wanted } : undefined,
  };
}

/** An object by its methods: it may come from another copy of this package. */
export function withMethods(methods: readonly string[], fix: string): OptionRule {
  return {
    accepts: (value) => {
      if (!isObject(value) && typeof value !== 'function') return false;
      return methods.every((name) => typeof (value as Fields)[name] === 'function');
    },
    fix,
  };
}

/** Whether a store has a part with these methods. */
export function storeWith<Store>(
  part: keyof Store,
  methods: readonly string[],
): (store: unknown) => store is Store {
  const rule = withMethods(methods, '');
  return (store): store is Store => isObject(store) && rule.accepts((store as Store)[part]);
}

/** An instance of a class. */
export function instanceOf(wanted: abstract new (...args: never) => object, fix: string): OptionRule {
  return { accepts: (value) => value instanceof wanted, fix, explain: ofAnotherCopy(wanted) };
}

/** Makes an option required. */
export function required(rule: OptionRule): OptionRule {
  return { ...rule, isRequired: true };
}

/** Marks an option that protects something: if its name is given, its value must not be `undefined`. */
export function protecting(rule: OptionRule): OptionRule {
  return { ...rule, isProtecting: true };
}

const MIN_SECRET_CHARACTERS = 32;

/** A key that signs or encrypts. */
export const SECRET_KEY: OptionRule = {
  accepts: (value) => typeof value === 'string' && value.trim().length >= MIN_SECRET_CHARACTERS,
  fix: `a random secret of at least ${MIN_SECRET_CHARACTERS} characters`,
  schema: { type: 'string', minLength: MIN_SECRET_CHARACTERS },
  isSecret: true,
};

/** Omits the option's value from messages. */
export function secret(rule: OptionRule): OptionRule {
  return { ...rule, isSecret: true };
}

function ofType(type: 'boolean' | 'string', fix: string): OptionRule {
  return { accepts: (value) => typeof value === type, fix, schema: { type } };
}

function orInfinity(rule: OptionRule): OptionRule {
  return either(rule, exactly(Number.POSITIVE_INFINITY));
}
