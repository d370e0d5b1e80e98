import type { Format } from 'ajv';
import { TEXT_FORMATS } from '../schema/text-formats.js';
import { loadFormats } from './load-ajv.cjs';
import { isWebAddress } from './web-address.js';

/** The formats that are checked, by name; loaded with the first schema that needs them. */
export function jsonFormats(): Readonly<Record<string, Format>> {
  return { ...loadFormats().fullFormats, url: isWebAddress, ...TEXT_FORMATS };
}

/** Whether a text is of a format; of one that nobody knows, every text is. */
export function fitsFormat(text: string, name: string): boolean {
  const formats = jsonFormats();
  const format = Object.hasOwn(formats, name) ? formats[name] : true;
  const test = typeof format === 'object' && 'validate' in format ? format.validate : format;
  if (typeof test === 'function') return (test as (value: string) => unknown)(text) === true;
  return test instanceof RegExp ? test.test(text) : true;
}

/** Patterns are Unicode by specification; those that older tools wrote may not parse as such. */
export function patternOf(pattern: string, flags = 'u'): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern, flags.replace('u', ''));
  }
}
