import type { DocComment } from '../comments/doc-comment.js';
import type { DescribedSchema } from '../types/described-schema.js';
import { describeSchema } from '../types/finish-schema.js';

/** What `@param page.size …` says, by the path within the parameter: `size`. */
export type PartComments = ReadonlyMap<string, DocComment>;

/** The comments about parts of one parameter. */
export function partComments(name: string, comment: DocComment | undefined): PartComments {
  const parts = [...(comment?.params ?? [])].filter(([path]) => path.startsWith(`${name}.`));
  return new Map(parts.map(([path, said]) => [path.slice(name.length + 1), said]));
}

/** The schema with its properties described; a path that leads nowhere says nothing. */
export function describeParts(schema: DescribedSchema, comments: PartComments): DescribedSchema {
  let described = schema;
  for (const [path, comment] of comments) described = describePart(described, path.split('.'), comment);
  return described;
}

function describePart(
  schema: DescribedSchema,
  [name = '', ...rest]: readonly string[],
  comment: DocComment,
): DescribedSchema {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, DescribedSchema>>;
  const part = Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (part === undefined) return schema;
  const described =
    rest.length > 0 ? describePart(part, rest, comment) : describeSchema({ schema: part }, comment).schema;
  const changed = { ...schema, properties: { ...properties, [name]: described } };
  if (described.default === undefined || !Array.isArray(schema.required)) return changed;
  return { ...changed, required: schema.required.filter((one) => one !== name) };
}
