import type { ClassType, DescribedSchema } from '../../core/contract/declaration.js';
import { filterFields, isObject } from '../../core/kernel/json.js';
import { isSchemaNode } from './keywords.js';
import {
  type DescribedType,
  NUMBER_KEY,
  type ScalarName,
  TEXTUAL_TYPES,
  type ValueModel,
  type ValueType,
} from './value-type.js';

/** Keywords that belong to the property and not to its type. */
const WORDS: ReadonlySet<string> = new Set(['description', 'title', 'default', 'deprecated', 'examples']);

const SCALARS: readonly unknown[] = ['string', 'number', 'integer', 'boolean'];

/**
 * Converts a described schema to a type. Parts that the other kinds of types can express use these, so that rules,
 * instances and coercion apply. The rest stays a schema that is written and hydrated unchanged.
 */
export function fromGenerated(
  schema: DescribedSchema,
  definitions: DescribedType['definitions'] = {},
): ValueModel {
  const nullable = withoutNull(schema);
  const words = filterFields(nullable.schema, (name) => WORDS.has(name));
  const form: DescribedSchema = filterFields(nullable.schema, (name) => !WORDS.has(name));
  const { type, keywords } = typeOf(form, definitions);
  return { type, nullable: nullable.isNullable, keywords: { ...keywords, ...words } };
}

/** The type of a form without words, with the keywords that the type does not cover. */
function typeOf(
  form: DescribedSchema,
  definitions: DescribedType['definitions'],
): Pick<ValueModel, 'type' | 'keywords'> {
  const { instanceOf, type, ...rest } = form;
  const { items, additionalProperties, ...others } = rest;
  for (const [kind, textual] of TEXTUAL_TYPES)
    if (textual.class === instanceOf)
      return {
        type: { kind },
        keywords: filterFields(rest, (name, value) => textual.schema[name] !== value),
      };
  const isArray = type === 'array' && isObject(items) && !('prefixItems' in form);
  if (instanceOf === Set || (isArray && instanceOf === undefined)) {
    const { items: _, ...keywords } = rest;
    const schema = (items ?? {}) as DescribedSchema;
    const item = fromGenerated(schema, definitions);
    const collection = instanceOf === Set ? 'set' : undefined;
    const array: ValueType = item.nullable
      ? { kind: 'array', items: { kind: 'described', schema, definitions }, collection }
      : { kind: 'array', items: item.type, keywords: item.keywords, collection };
    return { type: array, keywords };
  }
  const hasShape = 'properties' in form || 'propertyNames' in form;
  const hasValues = additionalProperties === true || isObject(additionalProperties);
  if (instanceOf === Map || (type === 'object' && hasValues && !hasShape)) {
    const { additionalProperties: _, ...keywords } = rest;
    const schema = additionalProperties === true ? {} : ((additionalProperties ?? {}) as DescribedSchema);
    const value = fromGenerated(schema, definitions);
    const isPlain = !value.nullable && Object.keys(value.keywords).length === 0;
    const values: ValueType = isPlain ? value.type : { kind: 'described', schema, definitions };
    if (instanceOf !== Map) return { type: { kind: 'record', values }, keywords };
    const { propertyNames } = keywords;
    const hasNumbers = isSchemaNode(propertyNames) && propertyNames.pattern === NUMBER_KEY;
    const keys = hasNumbers ? 'number' : undefined;
    return { type: { kind: 'record', values, collection: 'map', keys }, keywords };
  }
  if (typeof instanceOf === 'function')
    return { type: { kind: 'class', class: instanceOf as unknown as ClassType }, keywords: others };
  if (Array.isArray(form.enum)) {
    const { enum: values, ...keywords } = others;
    return { type: { kind: 'enum', values: values as readonly unknown[] }, keywords };
  }
  if (SCALARS.includes(type)) return { type: { kind: 'scalar', name: type as ScalarName }, keywords: others };
  if (Object.keys(form).length === 0) return { type: { kind: 'any' }, keywords: {} };
  return { type: { kind: 'described', schema: form, definitions }, keywords: {} };
}

/** The forms in which the generator writes `| null`. */
function withoutNull(schema: DescribedSchema): {
  readonly schema: DescribedSchema;
  readonly isNullable: boolean;
} {
  const { type, anyOf, ...others } = schema;
  if (Array.isArray(type) && type.length === 2 && type.includes('null')) {
    const only = type.find((name) => name !== 'null');
    const values = schema.enum?.filter((value) => value !== null);
    return { schema: { type: only, ...others, ...(values ? { enum: values } : {}) }, isNullable: true };
  }
  const branches = anyOf?.filter((branch) => branch.type !== 'null') ?? [];
  const [only, second] = branches;
  if (only === undefined || second !== undefined || anyOf?.length !== 2) return { schema, isNullable: false };
  return { schema: { ...only, ...others }, isNullable: true };
}

/** The definition that a `$ref` of a description names. */
export function referredDefinition(
  reference: string,
  described: DescribedType['definitions'],
): { readonly name: string; readonly schema: DescribedSchema } | undefined {
  const name = reference.replace(/^#\/\$defs\//, '');
  if (!Object.hasOwn(described, name)) return undefined;
  const schema = described[name];
  return isSchemaNode(schema) ? { name, schema } : undefined;
}
