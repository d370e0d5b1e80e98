import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/json.js';
import { mapSubschemas } from './keywords.js';

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

/** The schema where `null` counts as absent: for each property that may be missing, at any depth. */
export function nullableOptionals(schema: JsonSchema): JsonSchema {
  const changed = mapSubschemas(schema, nullableOptionals);
  const { properties, required = [] } = changed;
  if (properties === undefined) return changed;
  const entries = Object.entries(properties).map(([name, property]) => [
    name,
    required.includes(name) || !isRecord(property) ? property : nullableSchema(property),
  ]);
  return { ...changed, properties: Object.fromEntries(entries) };
}
