import type { DocDefault } from '../comments/doc-keywords.js';
import { CodeReference, type DescribedSchema } from './described-schema.js';

/**
 * What `@default` says of a value: one that it can have, or words that are for people. A wrong one would be
 * filled in wherever the model leaves the value out.
 */
export function docDefault(
  { text, value }: DocDefault,
  schema: DescribedSchema,
): { readonly value?: unknown; readonly words?: string } {
  if (text === '' || text === 'undefined') return {};
  if (fits(value, schema)) return { value };
  return fits(text, schema) ? { value: text } : { words: text };
}

function fits(value: unknown, schema: DescribedSchema): boolean {
  const { type, enum: values, const: only, anyOf, instanceOf } = schema;
  if (Array.isArray(anyOf)) return anyOf.some((branch: DescribedSchema) => fits(value, branch));
  if (Array.isArray(values) && !values.includes(value)) return false;
  if (only !== undefined && only !== value) return false;
  const kind = kindOf(value);
  if (type === undefined) return instanceOf === undefined || kind === 'object';
  const kinds: readonly unknown[] = [type].flat();
  if (!kinds.includes(kind) && !(kind === 'integer' && kinds.includes('number'))) return false;
  return kind !== 'string' || !(instanceOf instanceof CodeReference) || isTextOf(instanceOf, String(value));
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

function isTextOf({ name }: CodeReference, text: string): boolean {
  if (name === 'Date') return !Number.isNaN(Date.parse(text));
  return name !== 'URL' || URL.canParse(text);
}
