import { regularExpression } from '../schema/keywords.js';

/** A format of strings (an expression or a function) or of numbers. */
type Format = RegExp | ((text: string) => boolean) | { readonly isNumber: (value: number) => boolean };

const GROUP = '[0-9a-f]{1,4}';
const BYTE = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
/** Web addresses may also have leading zeros. */
const LOOSE_BYTE = String.raw`(?:25[0-5]|2[0-4]\d|[01]?\d\d?)`;

/** Eight groups; the last two may be an IPv4 address. `::` stands for one or more groups. */
function ipv6(byte: string): string {
  const end = String.raw`(?:${GROUP}:${GROUP}|(?:${byte}\.){3}${byte})`;
  const upTo = (groups: number): string =>
    groups === 0 ? '' : `(?:(?:${GROUP}:){0,${groups - 1}}${GROUP})?`;
  const shortened = Array.from(
    { length: 6 },
    (_, before) => `${upTo(before)}::(?:${GROUP}:){${5 - before}}${end}`,
  );
  return `(?:(?:${GROUP}:){6}${end}|${shortened.join('|')}|${upTo(6)}::${GROUP}|${upTo(7)}::)`;
}

/** RFC 3986; a reference needs no scheme and no path, and may contain double quotes. */
function uri(isReference: boolean): RegExp {
  const [optional, quote] = isReference ? ['?', '"'] : ['', ''];
  const chars = (others: string): string => String.raw`(?:[a-z0-9\-._~!$&'()*+,;=${others}]|%[0-9a-f]{2})`;
  const part = chars(`${quote}:@`);
  const query = chars(`${quote}:@/?`);
  const address = String.raw`\[(?:${ipv6(LOOSE_BYTE)}|v[0-9a-f]+\.[a-z0-9\-._~!$&'()*+,;=:]+)\]`;
  const authority = String.raw`(?:${chars(':')}*@)?(?:${address}|${chars(quote)}*)(?::\d*)?`;
  const path = `(?:/?/${authority}(?:/${part}*)*|/(?:${part}+(?:/${part}*)*)?|${part}+(?:/${part}*)*)`;
  const scheme = String.raw`(?:[a-z][a-z0-9+\-.]*:)`;
  return new RegExp(String.raw`^${scheme}${optional}${path}${optional}(?:\?${query}*)?(?:#${query}*)?$`, 'i');
}

function isDate(text: string): boolean {
  const [, year = 0, month = 0, day = 0] = (/^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? []).map(Number);
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const february = isLeap ? 29 : 28;
  const days = month === 2 ? february : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return month >= 1 && month <= 12 && day >= 1 && day <= days;
}

function isTime(text: string, needsZone: boolean): boolean {
  const found = /^(\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:(z)|([+-]\d\d)(?::?(\d\d))?)?$/i.exec(text);
  if (found === null) return false;
  const [hour, minute, second, zoneHour, zoneMinute] = [1, 2, 3, 5, 6].map((group) =>
    Number(found[group] ?? 0),
  ) as [number, number, number, number, number];
  const hasZone = found[4] !== undefined || found[5] !== undefined;
  if (Math.abs(zoneHour) > 23 || zoneMinute > 59 || (needsZone && !hasZone)) return false;
  if (hour <= 23 && minute <= 59 && second < 60) return true;
  // A leap second is the last second of a day in UTC.
  const utcMinute = minute - (found[5]?.startsWith('-') ? -zoneMinute : zoneMinute);
  const utcHour = hour - zoneHour - (utcMinute < 0 ? 1 : 0);
  return [23, -1].includes(utcHour) && [59, -1].includes(utcMinute) && second < 61;
}

function isDateTime(text: string, needsZone: boolean): boolean {
  const [date = '', time = '', ...more] = text.split(/t|\s/i);
  return more.length === 0 && isDate(date) && isTime(time, needsZone);
}

const ANY_NUMBER: Format = { isNumber: () => true };
const POINTER = '(?:/(?:[^~/]|~0|~1)*)*';

/** The formats that are checked, by name. */
export const FORMATS: Readonly<Record<string, Format>> = {
  date: isDate,
  time: (text) => isTime(text, true),
  'date-time': (text) => isDateTime(text, true),
  'iso-time': (text) => isTime(text, false),
  'iso-date-time': (text) => isDateTime(text, false),
  duration: /^P(?!$)(?:(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?|(?:\d+W)?)$/,
  uri: uri(false),
  'uri-reference': uri(true),
  'uri-template':
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
    /^(?:[^\x00-\x20"'<>%\\^`{|}]|%[0-9a-f]{2}|\{[+#./;?&=,!@|]?(?:\w|%[0-9a-f]{2})+(?::[1-9]\d{0,3}|\*)?(?:,(?:\w|%[0-9a-f]{2})+(?::[1-9]\d{0,3}|\*)?)*\})*$/i,
  url: isWebAddress,
  hostname:
    /^(?=.{1,253}\.?$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*\.?$/i,
  ipv4: new RegExp(String.raw`^(?:${BYTE}\.){3}${BYTE}$`),
  ipv6: new RegExp(`^${ipv6(BYTE)}$`, 'i'),
  regex: (text) => regularExpression(text, '') !== undefined && !/[^\\]\\Z/.test(text),
  uuid: /^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i,
  'json-pointer': new RegExp(`^${POINTER}$`),
  'json-pointer-uri-fragment': /^#(?:\/(?:[a-z0-9_\-.!$&'()*+,;:=@]|%[0-9a-f]{2}|~0|~1)*)*$/i,
  'relative-json-pointer': new RegExp(`^(?:0|[1-9][0-9]*)(?:#|${POINTER})$`),
  byte: /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  int32: { isNumber: (value) => Number.isInteger(value) && Math.abs(value + 0.5) < 2 ** 31 },
  int64: { isNumber: Number.isInteger },
  float: ANY_NUMBER,
  double: ANY_NUMBER,
  // As wide as class-validator's: RFC 6531 allows characters outside ASCII, RFC 5321 quoted names. Each character is
  // matched in one way only, so that the time is linear in the text.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  email: /^(?:"[\s\S]*"|[^\x00-\x20"@]+)@[^\x00-\x20@][^\x00-\x20@.]*\.[^\x00-\x20@]+$/,
};

/** The test of a format for values of a type; `undefined` if the format is unknown or applies to other types. */
export function formatTest(
  name: string,
  type: 'string' | 'number',
): ((value: unknown) => boolean) | undefined {
  const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
  if (format === undefined || 'isNumber' in format !== (type === 'number')) return undefined;
  if ('isNumber' in format) return format.isNumber as (value: unknown) => boolean;
  return (format instanceof RegExp ? (text: string) => format.test(text) : format) as (
    value: unknown,
  ) => boolean;
}

/** Patterns are Unicode by specification, but older tools wrote patterns that are invalid in that mode. */
export function patternOf(pattern: string, flags = 'u'): RegExp {
  return regularExpression(pattern, flags) ?? new RegExp(pattern, flags.replace('u', ''));
}

/** The checked formats, and further formats of JSON Schema and OpenAPI that are not checked. */
export const KNOWN_FORMATS: ReadonlySet<string> = new Set([
  ...Object.keys(FORMATS),
  ...['iri', 'iri-reference', 'idn-email', 'idn-hostname', 'binary', 'password'],
]);

/** The characters of a label, except hyphens inside it; the last label has no digits. */
const LETTERS = 'a-z\\u{a1}-\\u{ffff}';
const LABEL = new RegExp(`^[${LETTERS}0-9](?:-?[${LETTERS}0-9])*$`, 'iu');
const LAST_LABEL = new RegExp(`^[${LETTERS}]{2,}$`, 'iu');

/** The format `url`: an http, https or ftp URL with a public host name or address. It reads each part once. */
function isWebAddress(text: string): boolean {
  const scheme = /^(?:https?|ftp):\/\//i.exec(text)?.[0];
  if (scheme === undefined || /\s/.test(text)) return false;
  const parts = text.slice(scheme.length).split('@');
  return parts.some((part, index) => {
    const slash = part.indexOf('/');
    // A user name and a password may contain any character except spaces, so the host may follow any `@`.
    if ((slash < 0 && index < parts.length - 1) || (index === 1 && parts[0] === '')) return false;
    return isHostWithPort(slash < 0 ? part : part.slice(0, slash));
  });
}

function isHostWithPort(text: string): boolean {
  const colon = text.indexOf(':');
  if (colon >= 0 && !/^\d{2,5}$/.test(text.slice(colon + 1))) return false;
  const labels = text.slice(0, colon < 0 ? text.length : colon).split('.');
  return isPublicNumber(labels) || isHostName(labels);
}

function isHostName(labels: readonly string[]): boolean {
  const last = labels.at(-1) ?? '';
  return labels.length > 1 && LAST_LABEL.test(last) && labels.every((label) => LABEL.test(label));
}

function isPublicNumber(labels: readonly string[]): boolean {
  // Numbers of two digits may start with zero.
  const isByte = (label: string): boolean => /^(?:\d{1,2}|1\d\d|2\d\d)$/.test(label) && Number(label) <= 255;
  if (labels.length !== 4 || !labels.every(isByte)) return false;
  const [first = 0, second = 0, , last = 0] = labels.map(Number);
  const isPrivate =
    first === 10 ||
    first === 127 ||
    (first === 169 && second === 254) ||
    (first === 192 && second === 168) ||
    (first === 172 && second >= 16 && second <= 31);
  const isExact = [labels[0], labels[3]].every((label) => !label?.startsWith('0'));
  return isExact && !isPrivate && first <= 223 && last <= 254;
}
