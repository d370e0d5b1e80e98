import type { Format } from 'ajv';
import { TEXT_FORMATS } from '../schema/rule-meaning.js';
import { loadFormats } from './load-ajv.cjs';

let formats: Readonly<Record<string, Format>> | undefined;

/** The formats that are checked, by name; loaded with the first schema that needs them. */
export function jsonFormats(): Readonly<Record<string, Format>> {
  if (formats !== undefined) return formats;
  formats = { ...loadFormats().fullFormats, url: isWebAddress, ...TEXT_FORMATS };
  return formats;
}

/** The test of a format for values of a type; nothing where it says nothing of them, or nobody knows it. */
export function formatTest(
  name: string,
  type: 'string' | 'number',
): ((value: unknown) => boolean) | undefined {
  const known = jsonFormats();
  const format = Object.hasOwn(known, name) ? known[name] : undefined;
  const isTyped = typeof format === 'object' && 'validate' in format;
  if ((isTyped ? (format.type ?? 'string') : 'string') !== type) return undefined;
  const test = isTyped ? format.validate : format;
  if (typeof test === 'function') return (value) => (test as (value: unknown) => unknown)(value) === true;
  return test instanceof RegExp ? (value) => test.test(value as string) : undefined;
}

/** Patterns are Unicode by specification; those that older tools wrote may not parse as such. */
export function patternOf(pattern: string, flags = 'u'): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern, flags.replace('u', ''));
  }
}

/** The formats that are checked, and those of JSON Schema and OpenAPI that say something without that. */
export const KNOWN_FORMATS: ReadonlySet<string> = new Set([
  ...['date', 'time', 'date-time', 'iso-time', 'iso-date-time', 'duration'],
  ...['uri', 'uri-reference', 'uri-template', 'url', 'iri', 'iri-reference'],
  ...['email', 'idn-email', 'hostname', 'idn-hostname', 'ipv4', 'ipv6', 'uuid', 'regex'],
  ...['json-pointer', 'json-pointer-uri-fragment', 'relative-json-pointer'],
  ...['byte', 'binary', 'password', 'int32', 'int64', 'float', 'double'],
]);

/** The characters of a label, besides the hyphens within it; digits do not stand in the last one. */
const LETTERS = 'a-z\\u{a1}-\\u{ffff}';
const LABEL = new RegExp(`^[${LETTERS}0-9](?:-?[${LETTERS}0-9])*$`, 'iu');
const LAST_LABEL = new RegExp(`^[${LETTERS}]{2,}$`, 'iu');

/**
 * The format `url`: an address of the web or of FTP by a public name or number, with the verdicts of ajv-formats.
 * Its expression looks at a text again from each `:` and `@`; this looks at each part once.
 */
function isWebAddress(text: string): boolean {
  const scheme = /^(?:https?|ftp):\/\//i.exec(text)?.[0];
  if (scheme === undefined || /\s/.test(text)) return false;
  const parts = text.slice(scheme.length).split('@');
  return parts.some((part, index) => {
    const slash = part.indexOf('/');
    // A name and a password may hold all but spaces, so that the host may follow any `@`.
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

/** Two digits may begin with zero. */
function isByte(label: string): boolean {
  return /^(?:\d{1,2}|1\d\d|2\d\d)$/.test(label) && Number(label) <= 255;
}
