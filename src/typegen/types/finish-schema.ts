import { isSchemaNode } from '../../schema/keywords.js';
import type { DocComment } from '../comments/doc-comment.js';
import { docKeywords } from '../comments/doc-keywords.js';
import type { DescribedSchema } from './described-schema.js';
import { docDefault } from './doc-default.js';
import type { TypePlace, TypeWalk, Written } from './type-walk.js';

/** A schema with what a comment says of it; the comment nearer to the value wins. */
export function describeSchema({ schema, notes }: Written, comment: DocComment | undefined): Written {
  if (comment === undefined) return { schema, notes };
  const { isInteger, keywords, fallback } = docKeywords(comment);
  const { description, ...others } = schema;
  const { value, words } = fallback ? docDefault(fallback, schema) : {};
  const said = [comment.summary || description, words && `Default: ${words}`].filter(Boolean).join('\n\n');
  return {
    schema: {
      ...(isInteger ? wholeNumbers(others) : others),
      ...(said === '' ? {} : { description: said }),
      ...keywords,
      ...(value === undefined ? {} : { default: value }),
    },
    notes,
  };
}

/** Of a number, of one beside other values, and of those in a list or a record. */
function wholeNumbers(schema: DescribedSchema): DescribedSchema {
  const { type, anyOf, items, additionalProperties: values } = schema;
  const whole = (one: unknown) => (one === 'number' ? 'integer' : one);
  const within = (part: unknown) => (isSchemaNode(part) ? wholeNumbers(part) : part);
  return {
    ...schema,
    ...(type === undefined ? {} : { type: Array.isArray(type) ? type.map(whole) : whole(type) }),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(within) } : {}),
    ...(items === undefined ? {} : { items: within(items) }),
    ...(values === undefined ? {} : { additionalProperties: within(values) }),
  };
}

/** The finished schema: notes about single values stand at the end of the description. */
export function settleSchema({ schema, notes = [] }: Written): DescribedSchema {
  if (notes.length === 0) return schema;
  const { description, ...others } = schema;
  const text = [...(description === undefined ? [] : [description]), ...notes].join('\n');
  return { ...others, description: text };
}

/** The finished schema of a part of a type. */
export function writeSchema(place: TypePlace, walk: TypeWalk): DescribedSchema {
  return settleSchema(walk.write(place));
}
