import type { JsonSchema } from '../../contract/json-schema.js';
import type { Draft } from '../../schema/keywords.js';
import { metaSchemas } from '../json-schema-compiler.js';

const ADDRESSES: readonly (readonly [draft: Draft, address: string])[] = [
  ['7', 'http://json-schema.org/draft-07/'],
  ['2019-09', 'https://json-schema.org/draft/2019-09/'],
  ['2020-12', 'https://json-schema.org/draft/2020-12/'],
];

/** A schema with those of JSON Schema itself that its parts refer to among its definitions. */
export function withMetaSchemas(schema: JsonSchema, parts: ReadonlySet<JsonSchema>): JsonSchema {
  const wanted = new Set<Draft>();
  for (const { $ref = '#' } of parts)
    if ($ref.startsWith('http'))
      for (const [draft, address] of ADDRESSES) if ($ref.startsWith(address)) wanted.add(draft);
  if (wanted.size === 0) return schema;
  const $defs = Object.fromEntries([...wanted].flatMap(metaSchemas).map((each) => [String(each.$id), each]));
  return { ...schema, $defs: { ...schema.$defs, ...$defs } };
}
