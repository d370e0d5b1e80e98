import type { JsonSchema } from '../contract/json-schema.js';
import type { SchemaSource, StandardSchema } from '../contract/standard-schema.js';
import { UNLOADED_SCHEMA } from '../metadata/unloaded-schema.js';
import { unloadedParts } from './unloaded-parts.js';

/** JSON Schema of an explicit schema, or why there is none. `problem` continues a sentence: "its schema …". */
export type ReadSchema =
  | { readonly ok: true; readonly schema: JsonSchema; readonly standard?: StandardSchema }
  | UnreadSchema;

/** Why there is no JSON Schema of what was given. */
interface UnreadSchema {
  readonly ok: false;
  readonly problem: string;
  readonly causes?: readonly string[];
  readonly fix: string;
}

const TARGET = 'draft-2020-12';

/**
 * JSON Schema of a schema as an author may give it: JSON Schema itself (TypeBox is that, with symbols that
 * JSON does not have), or a Standard Schema that can give JSON Schema of its input (zod 4, arktype, …).
 * The bytes of JSON Schema are the author's; a derived one comes without `$schema`, which nobody wrote.
 *
 * @example
 * ```ts
 * const read = readSchemaSource({ type: 'object', properties: { city: { type: 'string' } } });
 * if (read.ok) console.log(JSON.stringify(read.schema));
 * ```
 */
export function readSchemaSource(source: SchemaSource): ReadSchema {
  if (isStandardSchema(source)) return readStandardSchema(source);
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    return {
      ok: false,
      problem: 'is neither JSON Schema nor a Standard Schema',
      fix: 'JSON Schema as an object, a TypeBox type, or a zod 4 schema',
    };
  }
  const unloaded = unloadedParts(source);
  if (unloaded !== undefined) return { ok: false, ...unloaded };
  try {
    return { ok: true, schema: plainCopy(source) };
  } catch (error) {
    return { ok: false, problem: `is not plain JSON: ${messageOf(error)}`, fix: 'a schema without cycles' };
  }
}

/** arktype's schemas are functions. */
function isStandardSchema(source: unknown): source is StandardSchema {
  const isHolder = typeof source === 'object' || typeof source === 'function';
  return isHolder && source !== null && '~standard' in source;
}

function readStandardSchema(standard: StandardSchema): ReadSchema {
  const { vendor } = standard['~standard'];
  try {
    const schema = writeJsonSchema(standard);
    if (typeof schema === 'object' && schema !== null) {
      const { $schema: _, ...derived } = plainCopy(schema);
      return { ok: true, schema: derived, standard };
    }
  } catch (error) {
    return {
      ok: false,
      problem: `cannot be written as JSON Schema by ${vendor}: ${messageOf(error)}`,
      // A library that meets `undefined` stumbles; what it will not write, it refuses in words of its own.
      causes: error instanceof TypeError ? UNLOADED_SCHEMA : [],
      fix: 'types that JSON has, with the transformation done in the tool, or JSON Schema itself',
    };
  }
  return {
    ok: false,
    problem: `is a Standard Schema (${vendor}) that gives no JSON Schema`,
    fix: 'a schema with `~standard.jsonSchema` (zod 4, arktype, valibot with @valibot/to-json-schema), or JSON Schema itself',
  };
}

/** The specification's way first (Standard JSON Schema 1.1); then the methods that came before it. */
function writeJsonSchema(standard: StandardSchema): unknown {
  const converter = standard['~standard'].jsonSchema;
  if (converter !== undefined) return converter.input({ target: TARGET });
  const methods = standard as unknown as Record<string, unknown>;
  for (const name of ['toJSONSchema', 'toJsonSchema']) {
    const method = methods[name];
    if (typeof method === 'function') return method.call(standard, { io: 'input', target: TARGET });
  }
  return undefined;
}

/** A copy of what JSON shows of the schema. */
function plainCopy(source: object): JsonSchema {
  return JSON.parse(JSON.stringify(source)) as JsonSchema;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
