import type { JsonSchema } from '../contract/json-schema.js';
import { allSchemas, type Draft } from '../schema/keywords.js';

/**
 * The draft that a schema is written in: 2020-12, unless it names another one or has keywords that only an
 * earlier one knows. Draft 7 writes tuples as `items: [...]`, 2019-09 alone has `$recursiveRef`.
 */
export function draftOf(schema: JsonSchema): Draft {
  const said = String(schema.$schema);
  if (/draft-0[3-7]/.test(said)) return '7';
  if (said.includes('2019-09')) return '2019-09';
  let draft: Draft = '2020-12';
  for (const { items, $recursiveRef } of allSchemas(schema)) {
    if (Array.isArray(items)) return '7';
    if ($recursiveRef !== undefined) draft = '2019-09';
  }
  return draft;
}
