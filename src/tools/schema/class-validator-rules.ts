import type { EnumSource } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import { type Fields, isObject, mapFields } from '../../core/kernel/json.js';
import type { ValidationRule } from '../validators/dto-rules.js';
import { mergeKeywords, regularExpression } from './keywords.js';
import { enumValues } from './value-type.js';

/** The only type of value that a rule accepts, if there is one. */
export type TypeHint = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'date';

/** A class-validator rule in JSON Schema. The schema is never stricter than the rule. */
interface RuleMeaning {
  readonly hint?: TypeHint;
  readonly keywords?: JsonSchema;
  /** The only values that are accepted. */
  readonly values?: readonly unknown[];
  /** The schema is equivalent, so that class-validator has nothing left to validate. */
  readonly exact: boolean;
  /** Strings that match certainly pass the rule; running the rule itself is expensive. */
  readonly enough?: RegExp;
  /** The rule accepts a missing property. */
  readonly acceptsMissing?: boolean;
}

/** A table row: the meaning, or how the decorator's arguments determine it. */
type RuleRow = RuleMeaning | ((constraints: readonly unknown[]) => RuleMeaning);

/** Rows by the name that class-validator records: `isInt`, `minLength`, … */
type RuleTable = Readonly<Record<string, RuleRow>>;

/** The keywords are equivalent to the rule. */
function exactly(hint: TypeHint, keywords: JsonSchema = {}): RuleMeaning {
  return { hint, keywords, exact: true };
}

/** The keywords cover a part of the rule; class-validator validates the rest when the tool is called. */
function partly(hint: TypeHint, keywords: JsonSchema = {}): RuleMeaning {
  return { hint, keywords, exact: false };
}

/** Whether `===` on a value means the same as comparison in JSON Schema. */
export function isJsonScalar(value: unknown): boolean {
  return (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  );
}

/** The options of a decorator, if it has any. */
function optionsOf(constraint: unknown): Fields {
  return isObject(constraint) ? (constraint as Fields) : {};
}

const HASH_DIGITS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    crc32: 8,
    crc32b: 8,
    md4: 32,
    md5: 32,
    ripemd128: 32,
    ripemd160: 40,
    sha1: 40,
    sha256: 64,
    sha384: 96,
    sha512: 128,
    tiger128: 32,
    tiger160: 40,
    tiger192: 48,
  }),
);

/**
 * A date, optionally with a time: year, then month and day, week and day, or the day of the year. JSON Schema's
 * `date` and `date-time` are narrower than class-validator's rules.
 */
const ISO_8601 = '^[+-]?\\d{4}(-?(\\d{2}(-?\\d{2})?|W\\d{2}(-?\\d)?|\\d{3}))?([T\\s]\\S*)?$';

/** RFC 3339, section 5.6. The format `date-time` also refuses days that a month does not have. */
const RFC_3339 =
  '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[ Tt]' +
  '([01]\\d|2[0-3]):[0-5]\\d:([0-5]\\d|60)(\\.\\d+)?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$';

/** Patterns that are equivalent to a rule. */
const EXACT_PATTERNS: Readonly<Record<string, string>> = {
  isRFC3339: RFC_3339,
  isMilitaryTime: '^([01]\\d|2[0-3]):?[0-5]\\d$',
  isHexadecimal: '^(0[xXhH])?[0-9a-fA-F]+$',
  isHexColor: '^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$',
  isOctal: '^(0[oO])?[0-7]+$',
  isMongoId: '^(0[xXhH][0-9a-fA-F]{22}|[0-9a-fA-F]{24})$',
  IsFirebasePushId: '^[a-zA-Z0-9_-]{20}$',
  isBase32: '^(?=(.{8})+$)[A-Z2-7]+=*$',
  isBase58: '^[A-HJ-NP-Za-km-z1-9]*$',
  isJwt: '^[A-Za-z0-9_-]*\\.[A-Za-z0-9_-]*\\.[A-Za-z0-9_-]*$',
  isEthereumAddress: '^0[xX][0-9a-fA-F]{40}$',
  isISRC: '^[A-Z]{2}[0-9A-Z]{3}\\d{7}$',
  isAscii: '^[\\x00-\\x7F]+$',
  isMultibyte: '[^\\x00-\\x7F]',
  isSurrogatePair: '[\\u{10000}-\\u{10FFFF}]',
};

/** Patterns that are not stricter than a rule. */
const WIDER_PATTERNS: Readonly<Record<string, string>> = {
  isPort: '^[+-]?(0|[1-9]\\d{0,4})$',
  isMacAddress: '^[0-9a-fA-F][0-9a-fA-F:.\\s-]+$',
  isIso8601: ISO_8601,
  isDateString: ISO_8601,
  isRgbColor: '^rgba?\\(',
  isSemVer: '^\\d+\\.\\d+\\.\\d+',
  isMimeType: '^[a-zA-Z]+/.+',
  isDataURI: 'data:',
  isMagnetURI: '^magnet:\\?',
  isBtcAddress: '^[a-zA-Z0-9]{26,62}$',
  isLatLong: ',',
  isISO31661Numeric: '^\\d{3}$',
  isBIC: '^[A-Za-z]{6}[A-Za-z0-9]{2}([A-Za-z0-9]{3})?$',
  isEAN: '^(\\d{8}|\\d{13}|\\d{14})$',
  isIsin: '^[A-Z]{2}[0-9A-Z]{9}\\d$',
  isISSN: '^\\d{4}-?\\d{3}[\\dxX]$',
  isLowercase: '^[^A-Z]*$',
  isUppercase: '^[^a-z]*$',
};

/** Rules for string formats: an exact pattern if possible, otherwise a pattern that is not stricter. */
const FORMAT_RULES: RuleTable = {
  // With these options, class-validator accepts more than the format: display names, hosts without a dot, IP addresses.
  isEmail: ([given]) => {
    const options = optionsOf(given);
    const isWider =
      options.allow_display_name === true ||
      options.require_display_name === true ||
      options.require_tld === false ||
      options.allow_ip_domain === true;
    if (isWider) return partly('string');
    const meaning = partly('string', { format: 'email' });
    return Object.keys(options).length === 0 ? { ...meaning, enough: PLAIN_EMAIL } : meaning;
  },
  // The format `uri` requires a scheme and refuses characters outside ASCII; class-validator does neither.
  isUrl: ([given]) => {
    const options = optionsOf(given);
    const scheme = options.require_protocol === true ? '[a-zA-Z][a-zA-Z0-9+.-]*:' : '';
    const isNamed = scheme === '' && options.require_tld !== false && options.require_host !== false;
    return partly('string', { pattern: isNamed ? '^[^\\s<>]*[.:][^\\s<>]*$' : `^${scheme}[^\\s<>]+$` });
  },
  isUuid: partly('string', { format: 'uuid' }),
  // The format `ipv6` refuses zones (`fe80::1%eth0`).
  isIp: ([version]) =>
    String(version) === '4'
      ? exactly('string', { format: 'ipv4' })
      : partly('string', { pattern: '^[0-9a-fA-F:.]+(%[0-9a-zA-Z.]+)?$' }),
  isHash: ([algorithm]) => {
    const digits = HASH_DIGITS.get(String(algorithm));
    return digits === undefined
      ? partly('string')
      : exactly('string', { pattern: `^[a-fA-F0-9]{${digits}}$` });
  },
  isBase64: ([options]) => byDefault(options, '^(?=(.{4})*$)[A-Za-z0-9+/]*={0,2}$'),
  isISO31661Alpha2: partly('string', { maxLength: 2 }),
  isISO31661Alpha3: partly('string', { maxLength: 3 }),
  isISO4217CurrencyCode: partly('string', { maxLength: 3 }),
};

/** Matches nearly all addresses; class-validator accepts all of them, and many more. */
const PLAIN_EMAIL = /^[a-z0-9]{1,20}(?:[._+-][a-z0-9]{1,20}){0,1}@(?:[a-z0-9]{1,30}\.){1,3}[a-z]{2,10}$/i;

/** Rules for any value, objects and numbers. */
const VALUE_RULES: RuleTable = {
  isString: exactly('string'),
  isBoolean: exactly('boolean'),
  isInt: exactly('integer'),
  // `multipleOf: 0.01` refuses 0.07 in floating point, so decimal places are left to class-validator.
  isNumber: ([options]) => {
    const { maxDecimalPlaces } = optionsOf(options);
    if (maxDecimalPlaces === 0) return exactly('integer');
    return maxDecimalPlaces === undefined ? exactly('number') : partly('number');
  },
  isDate: exactly('date'),
  isObject: exactly('object'),
  isArray: exactly('array'),
  // class-validator also accepts the reverse mapping of a numeric enum; it is not offered.
  isEnum: ([entity]) => oneOf(enumValues(entity as EnumSource)),
  // An object in the list is never `===` to a parsed one; `undefined` in the list lets the property be absent.
  isIn: ([values]) =>
    Array.isArray(values)
      ? { ...oneOf(values), acceptsMissing: values.includes(undefined) }
      : { exact: false },
  isNotIn: ([values]) => (Array.isArray(values) ? noneOf(values) : { exact: true, acceptsMissing: true }),
  equals: ([value]) => {
    if (value === undefined) return { exact: false, acceptsMissing: true };
    return isJsonScalar(value) ? { keywords: { const: value }, exact: true } : { exact: false };
  },
  notEquals: ([value]) => noneOf([value]),
  isEmpty: { values: ['', null], exact: true, acceptsMissing: true },
  // Only strings can be empty in this sense; for other types the keyword has no effect and is omitted.
  isNotEmpty: { keywords: { minLength: 1 }, exact: true },
  isNotEmptyObject: ([options]) => ({
    ...exactly('object', { minProperties: 1 }),
    exact: optionsOf(options).nullable !== false,
  }),
  isInstance: { exact: false },
  min: ([least]) => bound('minimum', least),
  max: ([most]) => bound('maximum', most),
  isPositive: exactly('number', { exclusiveMinimum: 0 }),
  isNegative: exactly('number', { exclusiveMaximum: 0 }),
  // class-validator divides by the integer part of the divisor.
  isDivisibleBy: ([divisor]) => {
    const whole = typeof divisor === 'number' ? Math.abs(Math.trunc(divisor)) : 0;
    return whole > 0 ? exactly('number', { multipleOf: whole }) : partly('number');
  },
  // Both also accept strings, which are left to class-validator.
  isLatitude: { keywords: { minimum: -90, maximum: 90 }, exact: false },
  isLongitude: { keywords: { minimum: -180, maximum: 180 }, exact: false },
  minDate: partly('date'),
  maxDate: partly('date'),
};

/** Values outside JSON need not be excluded; objects are never `===` to a parsed one. */
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

/** Rules for arrays as a whole; `each: true` applies any other rule to the items. */
const ARRAY_RULES: RuleTable = {
  arrayMinSize: ([least]) => size('minItems', least),
  arrayMaxSize: ([most]) => size('maxItems', most),
  arrayNotEmpty: exactly('array', { minItems: 1 }),
  // A function that identifies items is not recorded, so class-validator always checks too. The keyword compares
  // deeply, class-validator by reference; this differs only for objects, for which the keyword is omitted.
  arrayUnique: partly('array', { uniqueItems: true }),
  arrayContains: ([values]) => {
    if (!Array.isArray(values)) return partly('array');
    const wanted = values.filter(isJsonScalar).map((value) => ({ contains: { const: value } }));
    const keywords = wanted.length > 1 ? { allOf: wanted } : wanted[0];
    return { hint: 'array', keywords, exact: wanted.length === values.length };
  },
  arrayNotContains: ([values]) => {
    if (!Array.isArray(values)) return partly('array');
    const forbidden = values.filter(isJsonScalar);
    return exactly('array', forbidden.length > 0 ? { not: { contains: { enum: forbidden } } } : {});
  },
};

function size(keyword: 'minItems' | 'maxItems', value: unknown): RuleMeaning {
  return Number.isInteger(value) && (value as number) >= 0
    ? exactly('array', { [keyword]: value })
    : partly('array');
}

/**
 * Rules about the length and the content of strings. JSON Schema and class-validator both count code points, but
 * class-validator does not count variation selectors. Only there, the schema is narrower (`maxLength` with emoji) or
 * wider (`minLength`).
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
  // A pattern without flags, if it can be converted; otherwise only class-validator validates.
  matches: ([pattern, flags]) => {
    const expression =
      pattern instanceof RegExp
        ? pattern
        : regularExpression(String(pattern), typeof flags === 'string' ? flags : '');
    const portable = expression && portablePattern(expression);
    if (portable === undefined) return partly('string');
    return { hint: 'string', keywords: { pattern: portable.source }, exact: portable.exact };
  },
  contains: ([part]) => textContaining(part),
  notContains: ([part]) => {
    const { keywords, exact } = textContaining(part);
    return keywords?.pattern === undefined
      ? partly('string')
      : { hint: 'string', keywords: { not: keywords }, exact };
  },
  isAlpha: ([locale]) => byDefault(locale, '^[a-zA-Z]+$', 'en-US'),
  isAlphanumeric: ([locale]) => byDefault(locale, '^[0-9a-zA-Z]+$', 'en-US'),
  isBooleanString: { ...exactly('string'), values: ['true', 'false', '1', '0'] },
  isNumberString: ([options]) => {
    const { no_symbols: isPlain, locale } = optionsOf(options);
    if (isPlain) return exactly('string', { pattern: '^[0-9]+$' });
    return byDefault(locale, '^[+-]?([0-9]*[.])?[0-9]+$');
  },
};

function lengthOf(keyword: 'minLength' | 'maxLength', length: unknown): Record<string, number> {
  return typeof length === 'number' && length >= 0 && Number.isFinite(length)
    ? { [keyword]: keyword === 'minLength' ? Math.ceil(length) : Math.floor(length) }
    : {};
}

function textContaining(part: unknown): RuleMeaning {
  if (typeof part !== 'string' || part === '') return partly('string');
  return exactly('string', { pattern: part.replace(/[\^$\\.*+?()[\]{}|/]/g, '\\$&') });
}

/** A pattern that is equivalent to the rule without an option, or with the option's default. */
function byDefault(option: unknown, pattern: string, usual?: string): RuleMeaning {
  return option === undefined || option === usual ? exactly('string', { pattern }) : partly('string');
}

/** A pattern for JSON Schema: without flags, read as Unicode (2020-12, 6.3.3 and core 6.4). */
interface PortablePattern {
  readonly source: string;
  /** It has the same meaning for every text, including characters with two code units. */
  readonly exact: boolean;
}

/** Characters that may be escaped under the `u` flag; other punctuation may not. */
const SYNTAX = '^$\\.*+?()[]{}|/';

/** Parts with another meaning without the `u` flag: lone surrogates; `u{…}` and `p{…}` as plain letters. */
const READS_DIFFERENTLY = /[\uD800-\uDFFF]|\\u[dD][89a-fA-F]|\\u\{|\\[pP]/;

/** Parts that match half of a character with two code units without the `u` flag. */
const SEES_CODE_UNITS = /\.|\[\^|\\[DSW]/;

/**
 * Converts a regular expression with flags to a pattern without: `i` becomes both cases, `s` becomes `[\s\S]`.
 * Returns `undefined` if this is not exactly possible; the rule is then left to class-validator.
 */
export function portablePattern(expression: RegExp): PortablePattern | undefined {
  const { source, flags } = expression;
  if (/[myv]/.test(flags) || (!flags.includes('u') && READS_DIFFERENTLY.test(source))) return undefined;
  const ignoresCase = flags.includes('i');
  // Case folding beyond ASCII, escapes and back-references would each need their own tables.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
  const isSimple = /^[\x00-\x7F]*$/.test(source) && !/\\[1-9kpPuxc]|\(\?</.test(source);
  if (ignoresCase && (!isSimple || flags.includes('u'))) return undefined;
  const written = rewrite(source, ignoresCase, flags.includes('s'));
  if (regularExpression(written) === undefined) return undefined;
  return { source: written, exact: flags.includes('u') || !SEES_CODE_UNITS.test(source) };
}

function rewrite(source: string, ignoresCase: boolean, dotAll: boolean): string {
  let written = '';
  let inClass = false;
  for (let at = 0; at < source.length; at++) {
    const character = source.charAt(at);
    if (character === '\\') {
      at++;
      const next = source.charAt(at);
      // `\@` and `\-` are allowed without the `u` flag and an error with it; they mean the character itself.
      const isNeedless = !/[a-zA-Z0-9]/.test(next) && !SYNTAX.includes(next) && !(inClass && next === '-');
      written += isNeedless ? next : `\\${next}`;
      continue;
    }
    if (character === '[' && !inClass) inClass = true;
    else if (character === ']') inClass = false;
    const range = inClass ? /^[^\\\]]-[^\\\]]/.exec(source.slice(at))?.[0] : undefined;
    if (ignoresCase && range !== undefined && character !== '[') {
      written += bothCasesOfRange(range);
      at += 2;
    } else if (ignoresCase && /[a-zA-Z]/.test(character)) {
      const both = `${character.toLowerCase()}${character.toUpperCase()}`;
      written += inClass ? both : `[${both}]`;
    } else {
      written += dotAll && character === '.' && !inClass ? '[\\s\\S]' : character;
    }
  }
  return written;
}

/** `a-f` → `a-fA-F`; for a range across both cases, the other case of its letters is added. */
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
 * Rules for strings that JSON Schema cannot express: checksums, code lists, country-specific formats. class-validator
 * validates them when the tool is called.
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

const RULES: RuleTable = {
  ...mapFields(EXACT_PATTERNS, (pattern) => exactly('string', { pattern })),
  ...mapFields(WIDER_PATTERNS, (pattern) => partly('string', { pattern })),
  ...Object.fromEntries(RUN_AT_CALL_TIME.map((name) => [name, partly('string')])),
  ...VALUE_RULES,
  ...TEXT_RULES,
  ...FORMAT_RULES,
  ...ARRAY_RULES,
};

/**
 * The JSON Schema of a rule of class-validator (0.14 and 0.15), by the name that its decorator records; `undefined`
 * for custom validators, which only class-validator can run.
 *
 * @example
 * ```ts
 * ruleMeaning('maxLength', [80]); // { hint: 'string', keywords: { maxLength: 80 }, exact: true }
 * ```
 */
export function ruleMeaning(
  name: string | undefined,
  constraints: readonly unknown[],
): RuleMeaning | undefined {
  const row = name !== undefined && Object.hasOwn(RULES, name) ? RULES[name] : undefined;
  return typeof row === 'function' ? row(constraints) : row;
}

/** Only these values; `exact` for lists that JSON can compare. */
function oneOf(values: readonly unknown[]): RuleMeaning {
  const comparable = values.filter(isJsonScalar);
  if (comparable.length === 0) return { exact: false };
  return { values: comparable, exact: comparable.length === values.length };
}

/** The rules for the values of a property, or for its items. */
export interface ValueRules {
  readonly hint?: TypeHint;
  readonly keywords: JsonSchema;
  readonly values?: readonly unknown[];
}

/** A rule that its schema covers only partly. */
interface InexactRule {
  readonly rule: ValidationRule;
  readonly meaning: RuleMeaning;
}

/** All class-validator rules of one property, combined. */
export interface PropertyRules {
  readonly own: ValueRules;
  /** The rules with `each: true`. */
  readonly items: ValueRules;
  /** Some rule applies to items. */
  readonly hasItems: boolean;
  readonly isOptional: boolean;
  /** `@ValidateIf`: whether the rules apply is known only at call time. */
  readonly isConditional: boolean;
  readonly isNested: boolean;
  /** The types of values that its rules accept, without those of items; no value passes rules for several. */
  readonly kinds: ReadonlySet<TypeHint>;
  /** Every rule accepts a missing property. */
  readonly acceptsMissing: boolean;
  /** Rules that their schema covers only partly. */
  readonly inexact: readonly InexactRule[];
  /** Only class-validator itself can validate the value: conditions, unknown rules, contradictions. */
  readonly needsValidator: boolean;
}

/** A partial result while rules are combined. */
interface Sum {
  hint?: TypeHint;
  keywords: JsonSchema;
  values?: readonly unknown[];
}

/** Combines the rules of one property. Under `@ValidateIf` they add no constraints, only the type. */
export function propertyRules(rules: readonly ValidationRule[], eachIsOwn: boolean): PropertyRules {
  const own: Sum = { keywords: {} };
  const items: Sum = { keywords: {} };
  const inexact: InexactRule[] = [];
  let isContradiction = false;
  let isConditional = false;
  let isOptional = false;
  let hasItems = false;
  let acceptsMissing = true;
  const kinds = new Set<TypeHint>();
  // Decorators of a property run from last to first; this restores the author's order.
  for (const rule of rules.toReversed()) {
    const isOfItems = rule.each && !eachIsOwn;
    hasItems ||= isOfItems;
    if (rule.role === 'conditional' && rule.name === 'isOptional') isOptional = true;
    else if (rule.role === 'conditional') isConditional = true;
    if (rule.role === 'conditional' || rule.role === 'allowed') continue;
    let meaning: RuleMeaning;
    if (rule.conditional) meaning = { exact: false, acceptsMissing: true };
    // The nested class has its own rules, which are validated with it.
    else if (rule.role === 'defined' || rule.role === 'nested') meaning = { exact: true };
    else meaning = ruleMeaning(rule.name, rule.constraints) ?? { exact: false };
    if (!meaning.exact) inexact.push({ rule, meaning });
    acceptsMissing &&= meaning.acceptsMissing ?? false;
    if (!rule.each && meaning.hint !== undefined) kinds.add(kindOf(meaning.hint));
    if (isOfItems) add(items, meaning);
    else {
      isContradiction ||= contradicts(own, meaning);
      add(own, meaning);
    }
  }
  // A `Map` with rules for its values may have rules for objects.
  if (hasItems && !kinds.has('object')) kinds.add('array');
  return {
    own: isConditional ? { hint: own.hint, keywords: {} } : own,
    items: isConditional ? { hint: items.hint, keywords: {} } : items,
    hasItems,
    isOptional,
    isConditional,
    isNested: rules.some(({ role }) => role === 'nested'),
    kinds,
    acceptsMissing,
    inexact,
    needsValidator: isConditional || !inexact.every(({ rule }) => isStandardRule(rule)) || isContradiction,
  };
}

/** A built-in rule of class-validator, which is synchronous and depends only on the value. */
export function isStandardRule({ name, constraints, conditional }: ValidationRule): boolean {
  return !conditional && ruleMeaning(name, constraints) !== undefined;
}

function add(sum: Sum, { hint, keywords, values }: RuleMeaning): void {
  if (hint !== undefined && (sum.hint === undefined || (sum.hint === 'number' && hint === 'integer')))
    sum.hint = hint;
  if (keywords !== undefined) sum.keywords = mergeKeywords(sum.keywords, keywords);
  if (values === undefined) return;
  const common = sum.values?.filter((value) => values.includes(value)) ?? values;
  // An empty list is not a valid schema; class-validator then refuses every value.
  if (common.length > 0) sum.values = common;
}

/** Whether no value can pass both the combined rules and another rule. */
function contradicts(sum: Sum, { hint, values }: RuleMeaning): boolean {
  if (values !== undefined && sum.values !== undefined) return true;
  return hint !== undefined && sum.hint !== undefined && kindOf(hint) !== kindOf(sum.hint);
}

function kindOf(hint: TypeHint): TypeHint {
  return hint === 'integer' ? 'number' : hint;
}
