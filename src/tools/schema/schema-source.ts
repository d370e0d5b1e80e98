import type { JsonSchema, SchemaSource, StandardSchema } from '../../core/contract/json-schema.js';
import type { UnplacedFault } from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isObject, isRecord } from '../../core/kernel/json.js';
import { UNLOADED_SCHEMA } from '../../core/metadata/tool-option-faults.js';
import { isSchemaNode, KEYWORDS, schemaPlaces } from './keywords.js';

/** The JSON Schema of an explicit schema, or why it cannot be read. `problem` continues a sentence: "its schema …". */
type ReadSchema =
  | { readonly ok: true; readonly schema: JsonSchema; readonly standard?: StandardSchema }
  | ({ readonly ok: false } & UnplacedFault);

const TARGET = 'draft-2020-12';

/**
 * The JSON Schema of an author's schema: JSON Schema itself (including TypeBox, whose symbols JSON omits), or a
 * Standard Schema that can produce JSON Schema of its input (zod 4, arktype, …). An author's JSON Schema is not
 * changed; a derived one omits `$schema`, because the author did not write it.
 *
 * @example
 * ```ts
 * const read = readSchemaSource({ type: 'object', properties: { city: { type: 'string' } } });
 * if (read.ok) console.log(JSON.stringify(read.schema));
 * ```
 */
export function readSchemaSource(source: SchemaSource): ReadSchema {
  if (isStandardSchema(source)) return readStandardSchema(source);
  if (!isRecord(source)) {
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
    return {
      ok: false,
      problem: `is not plain JSON: ${errorMessage(error)}`,
      fix: 'a schema without cycles',
    };
  }
}

/** arktype's schemas are functions. */
export function isStandardSchema(source: unknown): source is StandardSchema {
  return (isObject(source) || typeof source === 'function') && '~standard' in source;
}

function readStandardSchema(standard: StandardSchema): ReadSchema {
  const { vendor } = standard['~standard'];
  try {
    const schema = writeJsonSchema(standard);
    if (isObject(schema)) {
      const { $schema: _, ...derived } = plainCopy(schema);
      return { ok: true, schema: derived, standard };
    }
  } catch (error) {
    const message = errorMessage(error);
    const places = vendor === 'zod' ? unwritablePlaces(standard) : [];
    const at = places.length === 0 ? '' : ` at ${listed(places)}`;
    return {
      ok: false,
      problem: `cannot be written as JSON Schema by ${vendor}${at}: ${message}`,
      // A library throws a TypeError for `undefined`; for types that it cannot convert, it has its own message.
      causes: error instanceof TypeError ? UNLOADED_SCHEMA : [],
      fix:
        vendor === 'zod' && /\bDate\b/.test(message)
          ? 'z.iso.datetime().transform((text) => new Date(text))'
          : 'types that JSON Schema can describe, or JSON Schema itself',
    };
  }
  return {
    ok: false,
    problem: `is a Standard Schema (${vendor}) without a JSON Schema`,
    fix: 'a schema with `~standard.jsonSchema` (zod 4, arktype, valibot with @valibot/to-json-schema), or JSON Schema itself',
  };
}

/** The specification first (Standard JSON Schema 1.1); then earlier methods of libraries. */
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

/** The parts that zod cannot write as JSON Schema; its error does not name them. */
function unwritablePlaces(standard: StandardSchema): readonly string[] {
  const places: string[] = [];
  const override = ({ zodSchema, jsonSchema, path }: ZodPart) => {
    const isOpen = Object.keys(jsonSchema).length === 0 && !OPEN_TYPES.has(zodSchema._zod.def.type);
    if (isOpen) places.unshift(path.join('.'));
  };
  try {
    const libraryOptions = { unrepresentable: 'any', override };
    standard['~standard'].jsonSchema?.input({ target: TARGET, libraryOptions });
  } catch {
    // The first error is reported.
  }
  return [...new Set(places)].filter((place) => place !== '');
}

interface ZodPart {
  readonly zodSchema: { readonly _zod: { readonly def: { readonly type: string } } };
  readonly jsonSchema: object;
  readonly path: readonly (string | number)[];
}

/** They accept everything, and so does their JSON Schema. */
const OPEN_TYPES: ReadonlySet<string> = new Set(['any', 'unknown']);

/** Copies the JSON form of a schema. */
function plainCopy(source: object): JsonSchema {
  return JSON.parse(JSON.stringify(source)) as JsonSchema;
}

/** Keywords without subschemas that would accept everything if they were undefined. */
const JUDGING: ReadonlySet<string> = new Set(['enum', 'const']);
/** Enough to identify the file. */
const MOST_TOLD = 5;

/**
 * The fault of a schema with parts that are not loaded yet: JSON omits undefined parts, and nothing would be checked
 * there. Continues "its schema …".
 */
export function unloadedParts(schema: object): UnplacedFault | undefined {
  const missing: string[] = [];
  const functions: string[] = [];
  const places = new Map(isSchemaNode(schema) ? [[schema, '']] : []);
  for (const [part, within] of places) {
    // An object with `toJSON` decides itself what it omits.
    if (typeof part.toJSON === 'function') continue;
    for (const name of Object.keys(part)) {
      if (JUDGING.has(name) && part[name] === undefined) missing.push(within + name);
      if (KEYWORDS.has(name) && isUnwritten(part[name])) functions.push(within + name);
    }
    for (const { node, name, key } of schemaPlaces(part)) {
      const path = key === undefined ? within + name : `${within}${name}.${key}`;
      if (node === undefined) missing.push(path);
      else if (key !== undefined && isUnwritten(node)) functions.push(path);
      else if (isSchemaNode(node) && !places.has(node)) places.set(node, `${path}.`);
    }
  }
  if (missing.length > 0)
    return {
      problem: `is undefined at ${listed(missing)}`,
      causes: UNLOADED_SCHEMA,
      fix: 'the schema in its own file; or leave out the key',
    };
  if (functions.length === 0) return undefined;
  return {
    problem: `is a function at ${listed(functions)}, which JSON cannot contain`,
    fix: "JSON Schema at that place: { type: 'number' }, not { type: () => Number }",
  };
}

function listed(paths: readonly string[]): string {
  return paths
    .slice(0, MOST_TOLD)
    .map((path) => `\`${path}\``)
    .join(' and ');
}

function isUnwritten(value: unknown): boolean {
  return typeof value === 'function' && !('toJSON' in value);
}
