import type { Format } from 'ajv';
import { TEXT_FORMATS } from '../schema/text-formats.js';
import { loadFormats } from './load-ajv.cjs';
import { isWebAddress } from './web-address.js';

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

/** Whether a text is of a format; of one that nobody knows, every text is. */
export function fitsFormat(text: string, name: string): boolean {
  return formatTest(name, 'string')?.(text) ?? true;
}

/** Patterns are Unicode by specification; those that older tools wrote may not parse as such. */
export function patternOf(pattern: string, flags = 'u'): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern, flags.replace('u', ''));
  }
}
