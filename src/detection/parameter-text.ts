import { readRelaxedJson } from '../checking/relaxed-json.js';
import type { JsonSchema } from '../contract/json-schema.js';

/**
 * The value that the text between two tags stands for. The formats with one tag per parameter write text
 * without quotes, so only the schema can tell `"42"` from `42`; without one, what reads as a number,
 * literal, object or array is that.
 */
export function readParameterText(text: string, schema: JsonSchema | undefined): unknown {
  const types = typesOf(schema);
  if (types?.size === 1 && types.has('string')) return text;
  const value = readLiteral(text);
  if (value === undefined || types === undefined) return value === undefined ? text : value;
  return types.has(typeOf(value)) || (typeof value === 'number' && types.has('integer')) ? value : text;
}

function readLiteral(text: string): unknown {
  const trimmed = text.trim();
  if (!/^[-\d[{(tTfFnN]/.test(trimmed)) return undefined;
  // The line break ends a number or word, which at the very end of a text could go on.
  const reading = readRelaxedJson(`${trimmed}\n`, 0);
  return reading.kind === 'read' && reading.end === trimmed.length ? reading.value : undefined;
}

/** The JSON types that a schema allows; `undefined` where it does not say. */
function typesOf(schema: JsonSchema | undefined): ReadonlySet<string> | undefined {
  if (schema === undefined) return undefined;
  if (typeof schema.type === 'string') return new Set([schema.type]);
  if (Array.isArray(schema.type)) return new Set(schema.type);
  if (schema.enum !== undefined) return new Set(schema.enum.map(typeOf));
  if (Object.hasOwn(schema, 'const')) return new Set([typeOf(schema.const)]);
  if (schema.anyOf === undefined) return undefined;
  const branches = schema.anyOf.map(typesOf);
  return branches.includes(undefined) ? undefined : new Set(branches.flatMap((types) => [...(types ?? [])]));
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
