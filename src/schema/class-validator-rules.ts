import type { EnumSource } from '../contract/declaration.js';
import { regularExpression } from './keywords.js';
import {
  exactly,
  FORMAT_RULES,
  isJsonScalar,
  optionsOf,
  partly,
  RuleMeaning,
  type RuleTable,
} from './rule-meaning.js';
import { enumValues } from './type-reference.js';

/** Rules for any value, objects and numbers. */
const VALUE_RULES: RuleTable = {
  isString: () => exactly('string'),
  isBoolean: () => exactly('boolean'),
  isInt: () => exactly('integer'),
  isNumber: ([options]) => numberWith(optionsOf(options).maxDecimalPlaces),
  isDate: () => exactly('date'),
  isObject: () => exactly('object'),
  isArray: () => exactly('array'),
  // The reverse mapping of a numeric enum, which class-validator lets through, is not offered.
  isEnum: ([entity]) => oneOf(enumValues(entity as EnumSource)),
  isIn: ([values]) => (Array.isArray(values) ? among(values) : { exact: false }),
  isNotIn: ([values]) => (Array.isArray(values) ? noneOf(values) : { exact: true, acceptsMissing: true }),
  equals: ([value]) => equalTo(value),
  notEquals: ([value]) => noneOf([value]),
  isEmpty: () => ({ values: ['', null], exact: true, acceptsMissing: true }),
  // Only text can be empty in this sense; on other types the keyword has no effect and is left out.
  isNotEmpty: () => ({ keywords: { minLength: 1 }, exact: true }),
  isNotEmptyObject: ([options]) => ({
    ...exactly('object', { minProperties: 1 }),
    exact: optionsOf(options).nullable !== false,
  }),
  isInstance: () => ({ exact: false }),
  min: ([least]) => bound('minimum', least),
  max: ([most]) => bound('maximum', most),
  isPositive: () => exactly('number', { exclusiveMinimum: 0 }),
  isNegative: () => exactly('number', { exclusiveMaximum: 0 }),
  isDivisibleBy: ([divisor]) => multipleOf(divisor),
  // Both take text as well, which is left to class-validator.
  isLatitude: () => ({ keywords: { minimum: -90, maximum: 90 }, exact: false }),
  isLongitude: () => ({ keywords: { minimum: -180, maximum: 180 }, exact: false }),
  minDate: () => partly('date'),
  maxDate: () => partly('date'),
};

/** `multipleOf: 0.01` refuses 0.07 in floating point, so decimal places are left to class-validator. */
function numberWith(decimalPlaces: unknown): RuleMeaning {
  if (decimalPlaces === 0) return exactly('integer');
  return decimalPlaces === undefined ? exactly('number') : partly('number');
}

/** An object in the list is never `===` to one that was just parsed; `undefined` lets the property be absent. */
function among(values: readonly unknown[]): RuleMeaning {
  return { ...oneOf(values), acceptsMissing: values.includes(undefined) };
}

function equalTo(value: unknown): RuleMeaning {
  if (value === undefined) return { exact: false, acceptsMissing: true };
  return isJsonScalar(value) ? { keywords: { const: value }, exact: true } : { exact: false };
}

/** Values that JSON cannot carry need no forbidding; objects are never `===` to one that was just parsed. */
function noneOf(values: readonly unknown[]): RuleMeaning {
  const forbidden = values.filter(isJsonScalar);
  const acceptsMissing = !values.includes(undefined);
  if (forbidden.length === 0) return { exact: true, acceptsMissing };
  const [only] = forbidden;
  const not = forbidden.length === 1 ? { const: only } : { enum: forbidden };
  return { keywords: { not }, exact: true, acceptsMissing };
}

function bound(keyword: 'minimum' | 'maximum', value: unknown): RuleMeaning {
  return typeof value === 'number' && Number.isFinite(value)
    ? exactly('number', { [keyword]: value })
    : partly('number');
}

/** class-validator divides by the whole part of the divisor. */
function multipleOf(divisor: unknown): RuleMeaning {
  const whole = typeof divisor === 'number' ? Math.abs(Math.trunc(divisor)) : 0;
  return whole > 0 ? exactly('number', { multipleOf: whole }) : partly('number');
}

/** Rules for arrays as a whole; `each: true` makes any other rule one for the items. */
const ARRAY_RULES: RuleTable = {
  arrayMinSize: ([least]) => size('minItems', least),
  arrayMaxSize: ([most]) => size('maxItems', most),
  arrayNotEmpty: () => exactly('array', { minItems: 1 }),
  // Whether the decorator was given a function that identifies items is not recorded, so class-validator
  // always looks too. It compares by reference; that the keyword compares deeply matters for objects only,
  // and it is left out for them.
  arrayUnique: () => partly('array', { uniqueItems: true }),
  arrayContains: ([values]) => (Array.isArray(values) ? containing(values) : partly('array')),
  arrayNotContains: ([values]) => (Array.isArray(values) ? notContaining(values) : partly('array')),
};

function size(keyword: 'minItems' | 'maxItems', value: unknown): RuleMeaning {
  return Number.isInteger(value) && (value as number) >= 0
    ? exactly('array', { [keyword]: value })
    : partly('array');
}

function containing(values: readonly unknown[]): RuleMeaning {
  const wanted = values.filter(isJsonScalar).map((value) => ({ contains: { const: value } }));
  const [first, ...others] = wanted;
  const keywords = others.length === 0 ? first : { allOf: wanted };
  return { hint: 'array', keywords, exact: wanted.length === values.length };
}

function notContaining(values: readonly unknown[]): RuleMeaning {
  const forbidden = values.filter(isJsonScalar);
  if (forbidden.length === 0) return exactly('array');
  return exactly('array', { not: { contains: { enum: forbidden } } });
}

/**
 * Rules about the length and the content of text. JSON Schema counts characters by code points and so does
 * class-validator, apart from variation selectors, which it does not count: the one place where the
 * schema is narrower (`maxLength` on emoji) or wider (`minLength`).
 */
const TEXT_RULES: RuleTable = {
  isLength: ([least, most]) =>
    exactly('string', { ...lengthOf('minLength', least), ...lengthOf('maxLength', most) }),
  minLength: ([least]) => exactly('string', lengthOf('minLength', least)),
  maxLength: ([most]) => exactly('string', lengthOf('maxLength', most)),
  // A character takes one to four bytes.
  isByteLength: ([least, most]) =>
    partly('string', {
      ...(typeof least === 'number' ? lengthOf('minLength', Math.ceil(least / 4)) : {}),
      ...lengthOf('maxLength', most),
    }),
  matches: ([pattern, flags]) => matching(pattern, flags),
  contains: ([part]) => textContaining(part),
  notContains: ([part]) => {
    const { keywords, exact } = textContaining(part);
    return keywords?.pattern === undefined
      ? partly('string')
      : { hint: 'string', keywords: { not: keywords }, exact };
  },
  isAlpha: ([locale]) => inLocale(locale, '^[a-zA-Z]+$'),
  isAlphanumeric: ([locale]) => inLocale(locale, '^[0-9a-zA-Z]+$'),
  isAscii: () => exactly('string', { pattern: '^[\\x00-\\x7F]+$' }),
  isMultibyte: () => exactly('string', { pattern: '[^\\x00-\\x7F]' }),
  isSurrogatePair: () => exactly('string', { pattern: '[\\u{10000}-\\u{10FFFF}]' }),
  isLowercase: () => partly('string', { pattern: '^[^A-Z]*$' }),
  isUppercase: () => partly('string', { pattern: '^[^a-z]*$' }),
  isBooleanString: () => ({ ...exactly('string'), values: ['true', 'false', '1', '0'] }),
  isNumberString: ([options]) => numberString(optionsOf(options)),
};

function lengthOf(keyword: 'minLength' | 'maxLength', length: unknown): Record<string, number> {
  return typeof length === 'number' && length >= 0 && Number.isFinite(length)
    ? { [keyword]: keyword === 'minLength' ? Math.ceil(length) : Math.floor(length) }
    : {};
}

/** A pattern without flags, if it can be written without; otherwise class-validator alone judges. */
function matching(pattern: unknown, flags: unknown): RuleMeaning {
  const expression =
    pattern instanceof RegExp
      ? pattern
      : regularExpression(String(pattern), typeof flags === 'string' ? flags : '');
  const portable = expression && portablePattern(expression);
  if (portable === undefined) return partly('string');
  return { hint: 'string', keywords: { pattern: portable.source }, exact: portable.exact };
}

function textContaining(part: unknown): RuleMeaning {
  if (typeof part !== 'string' || part === '') return partly('string');
  return exactly('string', { pattern: part.replace(/[\^$\\.*+?()[\]{}|/]/g, '\\$&') });
}

function inLocale(locale: unknown, pattern: string): RuleMeaning {
  return locale === undefined || locale === 'en-US' ? exactly('string', { pattern }) : partly('string');
}

function numberString(options: Readonly<Record<string, unknown>>): RuleMeaning {
  if (options.no_symbols) return exactly('string', { pattern: '^[0-9]+$' });
  if (options.locale !== undefined) return partly('string');
  return exactly('string', { pattern: '^[+-]?([0-9]*[.])?[0-9]+$' });
}

/** A pattern as JSON Schema takes it: without flags, read as Unicode (2020-12, 6.3.3 and core 6.4). */
interface PortablePattern {
  readonly source: string;
  /** It means the same for every text, also where characters take two code units. */
  readonly exact: boolean;
}

/** Between slashes these may follow a backslash under the `u` flag; other punctuation may not. */
const SYNTAX = '^$\\.*+?()[]{}|/';

/** What means something else without the `u` flag: halves of characters; `u{…}` and `p{…}` as plain letters. */
const READS_DIFFERENTLY = /[\uD800-\uDFFF]|\\u[dD][89a-fA-F]|\\u\{|\\[pP]/;

/** What, without the `u` flag, matches half of a character that takes two code units. */
const SEES_CODE_UNITS = /\.|\[\^|\\[DSW]/;

/**
 * The pattern of a regular expression with its flags worked into it: `i` spelt out as both cases, `s` as
 * `[\s\S]`. Nothing where that cannot be done faithfully; the rule is then left to class-validator.
 */
export function portablePattern(expression: RegExp): PortablePattern | undefined {
  const { source, flags } = expression;
  if (/[myv]/.test(flags) || (!flags.includes('u') && READS_DIFFERENTLY.test(source))) return undefined;
  const ignoresCase = flags.includes('i');
  if (ignoresCase && !canSpellCases(source, flags)) return undefined;
  const written = rewrite(source, { ignoresCase, dotAll: flags.includes('s') });
  if (regularExpression(written) === undefined) return undefined;
  return { source: written, exact: flags.includes('u') || !SEES_CODE_UNITS.test(source) };
}

/** Case folding beyond ASCII, escapes and back-references would each need tables of their own. */
function canSpellCases(source: string, flags: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
  return /^[\x00-\x7F]*$/.test(source) && !flags.includes('u') && !/\\[1-9kpPuxc]|\(\?</.test(source);
}

function rewrite(source: string, of: { readonly ignoresCase: boolean; readonly dotAll: boolean }): string {
  let written = '';
  let inClass = false;
  for (let at = 0; at < source.length; at++) {
    const character = source.charAt(at);
    if (character === '\\') {
      at++;
      written += escaped(source.charAt(at), inClass);
      continue;
    }
    if (character === '[' && !inClass) inClass = true;
    else if (character === ']') inClass = false;
    const range = inClass ? /^[^\\\]]-[^\\\]]/.exec(source.slice(at))?.[0] : undefined;
    if (of.ignoresCase && range !== undefined && character !== '[') {
      written += bothCasesOfRange(range);
      at += 2;
    } else if (of.ignoresCase && /[a-zA-Z]/.test(character)) {
      const both = `${character.toLowerCase()}${character.toUpperCase()}`;
      written += inClass ? both : `[${both}]`;
    } else {
      written += of.dotAll && character === '.' && !inClass ? '[\\s\\S]' : character;
    }
  }
  return written;
}

/** `\@` and `\-` are allowed without the `u` flag and an error with it; they mean the character itself. */
function escaped(character: string, inClass: boolean): string {
  const isNeedless = !/[a-zA-Z0-9]/.test(character) && !SYNTAX.includes(character);
  return isNeedless && !(inClass && character === '-') ? character : `\\${character}`;
}

/** `a-f` → `a-fA-F`; of a range across both cases, what of it has another case is added. */
function bothCasesOfRange(range: string): string {
  const from = range.charCodeAt(0);
  const to = range.charCodeAt(2);
  const common = (first: string, last: string) => {
    const start = Math.max(from, first.charCodeAt(0));
    const end = Math.min(to, last.charCodeAt(0));
    return start <= end ? String.fromCharCode(start, HYPHEN, end) : '';
  };
  return `${range}${common('a', 'z').toUpperCase()}${common('A', 'Z').toLowerCase()}`;
}

const HYPHEN = 0x2d;

/**
 * Rules for text of which JSON Schema can say no more than that it is text: checksums, lists of codes,
 * formats that depend on a country. class-validator judges them when the tool is called.
 */
export const RUN_AT_CALL_TIME: readonly string[] = [
  'isCreditCard',
  'isCurrency',
  'isDecimal',
  'isFqdn',
  'isFullWidth',
  'isHSL',
  'isHalfWidth',
  'isIBAN',
  'isISO6391',
  'isIdentityCard',
  'isIsbn',
  'isJson',
  'isLocale',
  'isMobilePhone',
  'isPassportNumber',
  'isPhoneNumber',
  'isPostalCode',
  'isStrongPassword',
  'isTaxId',
  'isTimeZone',
  'isVariableWidth',
];

/** The table: one row per class-validator decorator, by the name that it records (0.14 and 0.15). */
export const CLASS_VALIDATOR_RULES: RuleTable = {
  ...VALUE_RULES,
  ...TEXT_RULES,
  ...FORMAT_RULES,
  ...ARRAY_RULES,
  ...Object.fromEntries(RUN_AT_CALL_TIME.map((name) => [name, () => partly('string')])),
};

/**
 * What JSON Schema can say of a rule. Of a rule that is not in the table (a validator of the author's own)
 * it says nothing, and class-validator judges it when the tool is called.
 *
 * @example
 * ```ts
 * ruleMeaning('maxLength', [80]); // { hint: 'string', keywords: { maxLength: 80 }, exact: true }
 * ```
 */
export function ruleMeaning(name: string | undefined, constraints: readonly unknown[]): RuleMeaning {
  const isKnown = name !== undefined && Object.hasOwn(CLASS_VALIDATOR_RULES, name);
  return (isKnown && CLASS_VALIDATOR_RULES[name]?.(constraints)) || { exact: false };
}

/** Only these values; `exact` is for lists that JSON can compare. */
function oneOf(values: readonly unknown[], exact = true): RuleMeaning {
  const comparable = values.filter(isJsonScalar);
  if (comparable.length === 0) return { exact: false };
  return { values: comparable, exact: exact && comparable.length === values.length };
}
