import type { ParamOptions } from '../contract/declaration.js';
import type { JsonSchema, SchemaSource } from '../contract/json-schema.js';
import { setOwn } from '../kernel/json.js';
import { readSchemaSource } from './schema-source.js';
import { enumValues, resolveTypeReference } from './type-reference.js';
import { known, mapType, type TypeResult } from './type-result.js';
import { type ValueType } from './value-type.js';

/** What else is known where `@Param`'s options are read. */
interface OptionSurroundings {
  readonly designType?: unknown;
  readonly groups?: readonly string[];
}

/**
 * The type that `@Param`'s options name; nothing where they leave it to the metadata. Where the metadata
 * says `Array`, `type` and `enum` are the items'.
 */
export function typeFromOptions(
  options: ParamOptions,
  { designType, groups }: OptionSurroundings,
): TypeResult | undefined {
  if (options.schema !== undefined) return fromSource(options.schema);
  const inArray = designType === Array || options.items !== undefined;
  if (options.enum !== undefined) {
    const values: ValueType = { kind: 'enum', values: enumValues(options.enum) };
    return known(inArray ? { kind: 'array', items: values } : values);
  }
  if (options.items !== undefined) {
    return mapType(fromReference(options.items, groups), (items) => ({ kind: 'array', items }));
  }
  if (options.type !== undefined) {
    const type = resolveTypeReference(options.type, groups);
    const isItem = designType === Array && type.ok && type.type.kind !== 'array';
    return isItem ? mapType(type, (items) => ({ kind: 'array', items })) : type;
  }
  return fromValues(options.additionalProperties, groups);
}

function fromValues(
  values: ParamOptions['additionalProperties'],
  groups: readonly string[] | undefined,
): TypeResult | undefined {
  if (values === undefined || values === false) return undefined;
  const type = values === true ? known({ kind: 'any' }) : fromReference(values, groups);
  return mapType(type, (ofValues) => ({ kind: 'record', values: ofValues }));
}

/** An object that is no function is a schema; everything else names a type. */
function fromReference(reference: object | string, groups: readonly string[] | undefined): TypeResult {
  const isSchema = '~standard' in Object(reference) || isPlainObject(reference);
  return isSchema ? fromSource(reference as SchemaSource) : resolveTypeReference(reference, groups);
}

function fromSource(source: SchemaSource): TypeResult {
  const read = readSchemaSource(source);
  if (read.ok) return known({ kind: 'schema', schema: read.schema, standard: read.standard });
  return { ok: false, problem: `its schema ${read.problem}`, causes: read.causes ?? [], fix: read.fix };
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Options that decide about the type or the property as a whole; all others are keywords of JSON Schema. */
const NO_KEYWORDS: ReadonlySet<string> = new Set([
  'name',
  'description',
  'type',
  'items',
  'enum',
  'required',
  'nullable',
  'default',
  'additionalProperties',
  'schema',
]);

/** What `@Param` says by the names of keywords, in the author's order, added to what is known of the value. */
export function constraintKeywords(options: ParamOptions, known: JsonSchema = {}): JsonSchema {
  const keywords: Record<string, unknown> = { ...known };
  const said = options as JsonSchema;
  for (const name of Object.keys(said))
    if (!NO_KEYWORDS.has(name) && said[name] !== undefined) setOwn(keywords, name, said[name]);
  if (options.additionalProperties === false) keywords.additionalProperties = false;
  return keywords;
}

/** Description first, then the constraints, the default last: an order that does not depend on the source. */
export function orderedKeywords(of: {
  readonly description?: string;
  readonly constraints: JsonSchema;
  readonly defaultValue?: unknown;
}): JsonSchema {
  const { description, constraints, defaultValue } = of;
  const keywords = description === undefined ? constraints : { description, ...constraints };
  const fallback = jsonForm(defaultValue);
  return fallback === undefined ? keywords : { ...keywords, default: fallback };
}

/**
 * A default as JSON carries it: dates and URLs as text, bytes in base64. `undefined` where JSON has nothing
 * for the value, which then is no default that a model could be shown.
 */
function jsonForm(value: unknown): unknown {
  if (value === undefined || typeof value === 'string' || typeof value === 'boolean') return value;
  // JSON has no -0.
  if (Number.isFinite(value)) return Number(value) + 0;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Date && Number.isNaN(value.getTime())) return undefined;
  if (value instanceof Set) return [...value].map(jsonForm);
  try {
    const text = JSON.stringify(value, refuseNonNumbers);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON would write `null` for them: `limit = Infinity` does not mean that. */
function refuseNonNumbers(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('JSON has no such number');
  return value;
}
