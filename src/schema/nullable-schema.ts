import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/is-record.js';

/** The schema, or `null`: a second type where there is one type, otherwise a second branch. */
export function nullableSchema(schema: JsonSchema): JsonSchema {
  if (Object.keys(schema).length === 0) return schema;
  if (schema.enum !== undefined) return nullableEnum(schema);
  if (typeof schema.type === 'string' && schema.$ref === undefined) {
    return schema.type === 'null' ? schema : { ...schema, type: [schema.type, 'null'] };
  }
  const isUnion = schema.anyOf !== undefined && Object.keys(schema).length === 1;
  return { anyOf: [...(isUnion ? (schema.anyOf ?? []) : [schema]), { type: 'null' }] };
}

function nullableEnum(schema: JsonSchema): JsonSchema {
  const values = schema.enum ?? [];
  const types = [schema.type ?? []].flat();
  const type = types.length === 0 || types.includes('null') ? schema.type : [...types, 'null'];
  return {
    ...schema,
    ...(type === undefined ? {} : { type }),
    enum: values.includes(null) ? values : [...values, null],
  };
}

const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const;
const SINGLES = ['items', 'additionalProperties'] as const;
const RECORDS = ['$defs', 'patternProperties'] as const;

/** The schema where `null` counts as absent: for each property that may be missing, at any depth. */
export function nullableOptionals(schema: JsonSchema): JsonSchema {
  const changed: Record<string, unknown> = { ...schema };
  for (const keyword of LISTS) {
    const inner: unknown = schema[keyword];
    if (Array.isArray(inner)) changed[keyword] = inner.map(nullableOptionals);
  }
  for (const keyword of SINGLES) {
    const inner: unknown = schema[keyword];
    if (isRecord(inner)) changed[keyword] = nullableOptionals(inner);
  }
  for (const keyword of RECORDS) {
    const inner: unknown = schema[keyword];
    if (isRecord(inner)) changed[keyword] = mapValues(inner, nullableOptionals);
  }
  const { properties, required = [] } = schema;
  if (properties !== undefined)
    changed.properties = mapValues(properties, (property, name) => {
      const inner = nullableOptionals(property);
      return required.includes(name) ? inner : nullableSchema(inner);
    });
  return changed;
}

function mapValues(
  schemas: Readonly<Record<string, unknown>>,
  change: (schema: JsonSchema, name: string) => JsonSchema,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(schemas).map(([name, schema]) => [
    name,
    isRecord(schema) ? change(schema, name) : schema,
  ]);
  return Object.fromEntries(entries);
}
