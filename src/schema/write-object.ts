import type { ClassType } from '../contract/class-type.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { readDescription } from '../metadata/record-description.js';
import { classModel } from './class-model.js';
import type { Definitions } from './definitions.js';
import { embedSchema } from './embed-schema.js';
import { nullableSchema } from './nullable-schema.js';
import type { ObjectNode } from './object-node.js';
import type { TypeSurvey } from './survey-types.js';
import { BIGINT_DIGITS, type PropertyModel, type TaggedType, type ValueType } from './value-type.js';
import { writeDescribed } from './write-described.js';

/** What the parts of one schema share while it is written. */
export interface Writing {
  readonly survey: TypeSurvey;
  readonly definitions: Definitions;
}

/** `type`, `properties` and `required` of an object; `required` is there also when it is empty. */
export function writeObject(properties: readonly PropertyModel[], writing: Writing): JsonSchema {
  return {
    type: 'object',
    properties: Object.fromEntries(
      properties.map((property) => [property.name, writeProperty(property, writing)]),
    ),
    required: properties.filter(({ required }) => required).map(({ name }) => name),
  };
}

function writeProperty({ type, nullable, keywords }: PropertyModel, writing: Writing): JsonSchema {
  const schema = writeValue(type, writing);
  if (!nullable) return { ...schema, ...keywords };
  if (keywords.const === undefined) return { ...nullableSchema(schema), ...keywords };
  const { const: only, ...others } = keywords;
  return { ...nullableSchema({ ...schema, enum: [only] }), ...others };
}

function writeValue(type: ValueType, writing: Writing): JsonSchema {
  switch (type.kind) {
    case 'any':
      return {};
    case 'scalar':
      return { type: type.name };
    case 'date':
      return { type: 'string', format: 'date-time' };
    case 'url':
      return { type: 'string', format: 'uri' };
    case 'bytes':
    case 'buffer':
      return { type: 'string', contentEncoding: 'base64' };
    case 'bigint':
      return { type: 'string', pattern: BIGINT_DIGITS };
    case 'enum':
      return writeEnum(type.values);
    case 'array':
      return { type: 'array', items: { ...writeValue(type.items, writing), ...type.keywords } };
    case 'record':
      return {
        type: 'object',
        additionalProperties: type.values.kind === 'any' ? true : writeValue(type.values, writing),
      };
    case 'class':
      return writeClass(type, writing);
    case 'tagged':
      return { anyOf: writeBranches(type, writing) };
    case 'schema':
      return embedSchema(type.schema, writing.definitions);
    case 'described':
      return writeDescribed(type.schema, {
        definitions: writing.definitions,
        described: type.definitions,
        writeClass: (target) => writeClass({ kind: 'class', class: target }, writing),
      });
  }
}

/** With `type` when all values share one: some models heed only that. */
function writeEnum(values: readonly unknown[]): JsonSchema {
  const types = new Set(values.filter((value) => value !== null).map((value) => typeof value));
  const [type] = types;
  if (type === undefined || types.size > 1) return { enum: values };
  return { type: values.includes(null) ? [type, 'null'] : type, enum: values };
}

function writeClass(type: ValueType & { readonly kind: 'class' }, writing: Writing): JsonSchema {
  const read = classModel(type.class, type.groups);
  // The survey has reported every class that cannot be described.
  return read.ok ? writeNode(writing.survey.nodes.of(read.model), writing) : {};
}

function writeBranches(type: TaggedType, writing: Writing): readonly JsonSchema[] {
  return type.variants.flatMap((variant) => {
    const read = classModel(variant.class, type.groups);
    const tag = { property: type.property, value: variant.tag };
    return read.ok ? [writeNode(writing.survey.nodes.of(read.model, tag), writing)] : [];
  });
}

/** In place, unless it contains itself. */
function writeNode(node: ObjectNode, writing: Writing): JsonSchema {
  const write = () => writeObject(taggedProperties(node), writing);
  if (!writing.survey.recursive.has(node)) return write();
  return writing.definitions.refer(node, className(node.model.class), write);
}

/** Its name in the source, which a minifier may have changed since. */
function className(target: ClassType): string {
  return readDescription(target)?.name ?? target.name;
}

/** The tag is a property of its branch: the class's own, if it has one, otherwise the first. */
function taggedProperties({ model, tag }: ObjectNode): readonly PropertyModel[] {
  if (tag === undefined) return model.properties;
  const own = model.properties.find(({ name }) => name === tag.property);
  const { description } = own?.keywords ?? {};
  const property: PropertyModel = {
    name: tag.property,
    type: { kind: 'scalar', name: 'string' },
    required: true,
    nullable: false,
    keywords: { const: tag.value, ...(description === undefined ? {} : { description }) },
  };
  return own === undefined
    ? [property, ...model.properties]
    : model.properties.map((one) => (one === own ? property : one));
}
