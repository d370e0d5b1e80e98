import type { JsonSchema } from '../contract/json-schema.js';
import { eachSubschema, isSchemaNode, type Subschema } from '../schema/keywords.js';
import { resolveReference } from './resolve-reference.js';

/**
 * Every schema below `start` that judges the value at a path. The validator names the schema that an error
 * arose in as an object; its path in the schema stops at each `$ref` and does not tell which branch of a
 * union led there.
 */
export function schemasAt(
  start: JsonSchema,
  path: readonly string[],
  root: JsonSchema,
): ReadonlySet<JsonSchema> {
  let level = sameValue([start], root);
  for (const key of path)
    level = sameValue(
      [...level].flatMap((schema) => partsThat(schema, (part) => judgesMember(part, key))),
      root,
    );
  return level;
}

function sameValue(starts: readonly JsonSchema[], root: JsonSchema): Set<JsonSchema> {
  const found = new Set<JsonSchema>(starts);
  for (const schema of found) {
    if (typeof schema.$ref === 'string') found.add(resolveReference(schema, root));
    for (const part of partsThat(schema, judgesValue)) found.add(part);
  }
  return found;
}

/** Errors about the name of a property are told of the object that has it. */
function judgesValue({ keyword }: Subschema): boolean {
  return keyword.judges === 'value' || keyword.judges === 'names';
}

function judgesMember({ keyword, name, key }: Subschema, member: string): boolean {
  if (name === 'properties') return key === member;
  return keyword.judges === 'properties' || keyword.judges === 'items';
}

function partsThat(schema: JsonSchema, isWanted: (part: Subschema) => boolean): readonly JsonSchema[] {
  const parts: JsonSchema[] = [];
  eachSubschema(schema, (part) => {
    if (isSchemaNode(part.node) && isWanted(part)) parts.push(part.node);
  });
  return parts;
}
