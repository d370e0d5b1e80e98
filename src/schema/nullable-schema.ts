import type { JsonSchema } from '../contract/json-schema.js';

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
