import type { DocComment } from '../comments/doc-comment.js';
import { docKeywords } from '../comments/doc-keywords.js';
import type { DescribedSchema } from './described-schema.js';
import type { TypePlace, TypeWalk, Written } from './type-walk.js';

/** A schema with what a comment says of it; the comment nearer to the value wins. */
export function describeSchema({ schema, notes }: Written, comment: DocComment | undefined): Written {
  if (comment === undefined) return { schema, notes };
  const { keywords, isInteger } = docKeywords(comment);
  const { description, ...others } = schema;
  const said = comment.summary || description;
  return {
    schema: {
      ...(isInteger ? wholeNumbers(others) : others),
      ...(said === undefined ? {} : { description: said }),
      ...keywords,
    },
    notes,
  };
}

function wholeNumbers(schema: DescribedSchema): DescribedSchema {
  if (schema.type === 'number') return { ...schema, type: 'integer' };
  return schema.items === undefined
    ? schema
    : { ...schema, items: wholeNumbers(schema.items as DescribedSchema) };
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
