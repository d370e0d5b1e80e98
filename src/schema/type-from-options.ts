import type { ParamOptions } from '../contract/param-options.js';
import type { SchemaSource } from '../contract/standard-schema.js';
import { enumValues } from './enum-values.js';
import { resolveTypeReference } from './resolve-type-reference.js';
import { readSchemaSource } from './schema-source.js';
import { known, mapType, type TypeResult } from './type-result.js';
import type { ValueType } from './value-type.js';

/** What else is known where `@Param`'s options are read. */
export interface OptionSurroundings {
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
