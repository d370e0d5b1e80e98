import type { JsonSchema } from '../contract/json-schema.js';

/** The only kind of value that a rule accepts, where it accepts only one. */
export type TypeHint = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'date';

/** What JSON Schema says of one class-validator rule. It never says more than the rule does. */
export interface RuleMeaning {
  readonly hint?: TypeHint;
  readonly keywords?: JsonSchema;
  /** The only values that are accepted. */
  readonly values?: readonly unknown[];
  /** Nothing is left for class-validator to judge. */
  readonly exact: boolean;
  /** Text that matches passes the rule for certain; asking the rule itself is dear. */
  readonly enough?: RegExp;
  /** The rule accepts a property that is not there. */
  readonly acceptsMissing?: boolean;
}

/** One row of the table: from the decorator's own arguments to its meaning. */
type RuleRow = (constraints: readonly unknown[]) => RuleMeaning;

/** Rows by the name that class-validator records: `isInt`, `minLength`, … */
export type RuleTable = Readonly<Record<string, RuleRow>>;

/** The keywords say all that the rule says. */
export function exactly(hint: TypeHint, keywords: JsonSchema = {}): RuleMeaning {
  return { hint, keywords, exact: true };
}

/** The keywords say part of it; class-validator judges the rest when the tool is called. */
export function partly(hint: TypeHint, keywords: JsonSchema = {}): RuleMeaning {
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

/** The options that a decorator was given, where it takes some. */
export function optionsOf(constraint: unknown): Readonly<Record<string, unknown>> {
  return typeof constraint === 'object' && constraint !== null
    ? (constraint as Readonly<Record<string, unknown>>)
    : {};
}

const HASH_DIGITS: Readonly<Record<string, number>> = {
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
};

/**
 * A date, optionally with a time: year, then month and day, week and day, or the day of the year. JSON
 * Schema's `date` and `date-time` are narrower than what class-validator accepts.
 */
const ISO_8601 = '^[+-]?\\d{4}(-?(\\d{2}(-?\\d{2})?|W\\d{2}(-?\\d)?|\\d{3}))?([T\\s]\\S*)?$';

/** RFC 3339, section 5.6. The format `date-time` also refuses days that a month does not have. */
const RFC_3339 =
  '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[ Tt]' +
  '([01]\\d|2[0-3]):[0-5]\\d:([0-5]\\d|60)(\\.\\d+)?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$';

/** Rules for text in a format of its own: exact where a pattern can be, a safe hint where it cannot. */
export const FORMAT_RULES: RuleTable = {
  isEmail: ([options]) => email(optionsOf(options)),
  isUrl: ([options]) => url(optionsOf(options)),
  isUuid: () => partly('string', { format: 'uuid' }),
  isIp: ([version]) => ipAddress(version),
  isPort: () => partly('string', { pattern: '^[+-]?(0|[1-9]\\d{0,4})$' }),
  isMacAddress: () => partly('string', { pattern: '^[0-9a-fA-F][0-9a-fA-F:.\\s-]+$' }),
  isIso8601: () => partly('string', { pattern: ISO_8601 }),
  isDateString: () => partly('string', { pattern: ISO_8601 }),
  isRFC3339: () => exactly('string', { pattern: RFC_3339 }),
  isMilitaryTime: () => exactly('string', { pattern: '^([01]\\d|2[0-3]):?[0-5]\\d$' }),
  isHexadecimal: () => exactly('string', { pattern: '^(0[xXhH])?[0-9a-fA-F]+$' }),
  isHexColor: () =>
    exactly('string', { pattern: '^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$' }),
  isRgbColor: () => partly('string', { pattern: '^rgba?\\(' }),
  isOctal: () => exactly('string', { pattern: '^(0[oO])?[0-7]+$' }),
  isMongoId: () => exactly('string', { pattern: '^(0[xXhH][0-9a-fA-F]{22}|[0-9a-fA-F]{24})$' }),
  IsFirebasePushId: () => exactly('string', { pattern: '^[a-zA-Z0-9_-]{20}$' }),
  isHash: ([algorithm]) => hash(algorithm),
  isBase32: () => exactly('string', { pattern: '^(?=(.{8})+$)[A-Z2-7]+=*$' }),
  isBase58: () => exactly('string', { pattern: '^[A-HJ-NP-Za-km-z1-9]*$' }),
  isBase64: ([options]) =>
    options === undefined
      ? exactly('string', { pattern: '^(?=(.{4})*$)[A-Za-z0-9+/]*={0,2}$' })
      : partly('string'),
  isJwt: () => exactly('string', { pattern: '^[A-Za-z0-9_-]*\\.[A-Za-z0-9_-]*\\.[A-Za-z0-9_-]*$' }),
  isSemVer: () => partly('string', { pattern: '^\\d+\\.\\d+\\.\\d+' }),
  isMimeType: () => partly('string', { pattern: '^[a-zA-Z]+/.+' }),
  isDataURI: () => partly('string', { pattern: 'data:' }),
  isMagnetURI: () => partly('string', { pattern: '^magnet:\\?' }),
  isEthereumAddress: () => exactly('string', { pattern: '^0[xX][0-9a-fA-F]{40}$' }),
  isBtcAddress: () => partly('string', { pattern: '^[a-zA-Z0-9]{26,62}$' }),
  isLatLong: () => partly('string', { pattern: ',' }),
  isISO31661Alpha2: () => partly('string', { maxLength: 2 }),
  isISO31661Alpha3: () => partly('string', { maxLength: 3 }),
  isISO31661Numeric: () => partly('string', { pattern: '^\\d{3}$' }),
  isISO4217CurrencyCode: () => partly('string', { maxLength: 3 }),
  isBIC: () => partly('string', { pattern: '^[A-Za-z]{6}[A-Za-z0-9]{2}([A-Za-z0-9]{3})?$' }),
  isEAN: () => partly('string', { pattern: '^(\\d{8}|\\d{13}|\\d{14})$' }),
  isIsin: () => partly('string', { pattern: '^[A-Z]{2}[0-9A-Z]{9}\\d$' }),
  isISRC: () => exactly('string', { pattern: '^[A-Z]{2}[0-9A-Z]{3}\\d{7}$' }),
  isISSN: () => partly('string', { pattern: '^\\d{4}-?\\d{3}[\\dxX]$' }),
};

/** Addresses as nearly all are; class-validator accepts every one of them, and many more. */
const PLAIN_EMAIL = /^[a-z0-9]{1,20}(?:[._+-][a-z0-9]{1,20}){0,1}@(?:[a-z0-9]{1,30}\.){1,3}[a-z]{2,10}$/i;

/** With these options class-validator accepts what the format does not: names, hosts without a dot, IPs. */
function email(options: Readonly<Record<string, unknown>>): RuleMeaning {
  const isWider =
    options.allow_display_name === true ||
    options.require_display_name === true ||
    options.require_tld === false ||
    options.allow_ip_domain === true;
  if (isWider) return partly('string');
  const meaning = partly('string', { format: 'email' });
  return Object.keys(options).length === 0 ? { ...meaning, enough: PLAIN_EMAIL } : meaning;
}

/** The format `uri` needs a scheme and refuses characters outside ASCII; class-validator does neither. */
function url(options: Readonly<Record<string, unknown>>): RuleMeaning {
  const scheme = options.require_protocol === true ? '[a-zA-Z][a-zA-Z0-9+.-]*:' : '';
  const isNamed = scheme === '' && options.require_tld !== false && options.require_host !== false;
  return partly('string', { pattern: isNamed ? '^[^\\s<>]*[.:][^\\s<>]*$' : `^${scheme}[^\\s<>]+$` });
}

/** The format `ipv6` refuses zones (`fe80::1%eth0`). */
function ipAddress(version: unknown): RuleMeaning {
  if (String(version) === '4') return exactly('string', { format: 'ipv4' });
  return partly('string', { pattern: '^[0-9a-fA-F:.]+(%[0-9a-zA-Z.]+)?$' });
}

function hash(algorithm: unknown): RuleMeaning {
  const digits = Object.hasOwn(HASH_DIGITS, String(algorithm)) ? HASH_DIGITS[String(algorithm)] : undefined;
  return digits === undefined ? partly('string') : exactly('string', { pattern: `^[a-fA-F0-9]{${digits}}$` });
}

/**
 * Formats that this room writes, in the width in which class-validator accepts them, for the checker to use
 * instead of narrower ones. `email`: RFC 6531 allows characters outside ASCII and RFC 5321 quoted names;
 * ajv-formats refuses both.
 */
export const TEXT_FORMATS: Readonly<Record<string, RegExp>> = {
  // Each place can be read in one way only, so that it takes one look at each character, whatever the text.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  email: /^(?:"[\s\S]*"|[^\x00-\x20"@]+)@[^\x00-\x20@][^\x00-\x20@.]*\.[^\x00-\x20@]+$/,
};
