import type { JsonSchema } from '../contract/json-schema.js';
import { allSchemas, type Draft } from '../schema/keywords.js';

/**
 * The draft that a schema is written in: 2020-12, unless it names another one or has keywords that only an
 * earlier one knows. Draft 7 writes tuples as `items: [...]`, 2019-09 alone has `$recursiveRef`.
 */
export function draftOf(schema: JsonSchema, parts: Iterable<JsonSchema> = allSchemas(schema)): Draft {
  const said = saidDraft(schema);
  if (said !== undefined) return said;
  let draft: Draft = '2020-12';
  for (const { items, $recursiveRef } of parts) {
    if (Array.isArray(items)) return '7';
    if ($recursiveRef !== undefined) draft = '2019-09';
  }
  return draft;
}

/** An earlier draft, where the schema names it. */
export function saidDraft({ $schema }: JsonSchema): Draft | undefined {
  if (typeof $schema !== 'string') return undefined;
  if (/draft-0[3-7]/.test($schema)) return '7';
  return $schema.includes('2019-09') ? '2019-09' : undefined;
}

/** Whether a keyword can only be meant in a draft before 2020-12. */
export function belongsToEarlier(name: string, value: unknown): boolean {
  return name === '$recursiveRef' || (name === 'items' && Array.isArray(value));
}
