import type { JsonSchema } from '../../contract/json-schema.js';
import { allSchemas, type Draft } from '../../schema/keywords.js';
import { metaSchemas } from '../json-schema-compiler.js';

const ADDRESSES: readonly (readonly [draft: Draft, address: string])[] = [
  ['7', 'http://json-schema.org/draft-07/'],
  ['2019-09', 'https://json-schema.org/draft/2019-09/'],
  ['2020-12', 'https://json-schema.org/draft/2020-12/'],
];

/** A schema with those of JSON Schema itself that it refers to among its definitions. */
export function withMetaSchemas(schema: JsonSchema): JsonSchema {
  const references = [...allSchemas(schema)].map(({ $ref }) => String($ref));
  const wanted = ADDRESSES.filter(([, address]) =>
    references.some((reference) => reference.startsWith(address)),
  );
  if (wanted.length === 0) return schema;
  const found = wanted.flatMap(([draft]) => metaSchemas(draft));
  const $defs = Object.fromEntries(found.map((each) => [String(each.$id), each]));
  return { ...schema, $defs: { ...schema.$defs, ...$defs } };
}
