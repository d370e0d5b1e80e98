import type { JsonSchema } from '../contract/json-schema.js';
import { findReference } from './find-reference.js';
import { allSchemas, mapSubschemas } from './keywords.js';

/** The `$defs` of one schema while it is written. Names depend on the order of first appearance only. */
export class Definitions {
  readonly #names = new Map<unknown, string>();
  readonly #schemas = new Map<string, JsonSchema>();

  /** A reference to the definition of `owner`, which is written when it is first referred to. */
  refer(owner: unknown, wanted: string, write: () => JsonSchema): JsonSchema {
    const before = this.#names.get(owner);
    if (before !== undefined) return reference(before);
    const name = this.#free(wanted === '' ? 'Object' : wanted);
    this.#names.set(owner, name);
    // Taken before it is written, because it may refer to itself.
    this.#schemas.set(name, {});
    this.#schemas.set(name, write());
    return reference(name);
  }

  /** The schema with `$defs`, if there are any. */
  attachTo(schema: JsonSchema): JsonSchema {
    return this.#schemas.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(this.#schemas) };
  }

  #free(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#schemas.has(name); count++) name = `${wanted}${count}`;
    return name;
  }
}

/** RFC 6901, section 3: `~` and `/` are escaped in a pointer. */
function reference(name: string): JsonSchema {
  return { $ref: `#/$defs/${name.replace(/~/g, '~0').replace(/\//g, '~1')}` };
}

/**
 * An explicit schema as part of a larger one. References into itself (`#`, `#/$defs/Node`) would point at
 * the larger one there, so what they mean moves to its `$defs`. A schema without any keeps its bytes, and so
 * does one with an `$id`, which its references are relative to wherever it stands.
 */
export function embedSchema(schema: JsonSchema, definitions: Definitions): JsonSchema {
  if (typeof schema.$id === 'string' || ![...allSchemas(schema)].some((part) => localReference(part)))
    return schema;
  const { $defs: _, definitions: __, ...body } = schema;
  return withOwnReferences(body, { root: schema, definitions });
}

interface Embedding {
  readonly root: JsonSchema;
  readonly definitions: Definitions;
}

/** In one schema that stands by itself, a dynamic reference means what a plain one does. */
function localReference({ $ref, $dynamicRef, $recursiveRef }: JsonSchema): string | undefined {
  return [$ref, $dynamicRef, $recursiveRef].find((one) => typeof one === 'string' && one.startsWith('#')) as
    | string
    | undefined;
}

function withOwnReferences(schema: JsonSchema, embed: Embedding): JsonSchema {
  const reference = localReference(schema);
  const body = mapSubschemas(schema, (part) => withOwnReferences(part, embed));
  if (reference === undefined) return withoutAnchor(body);
  const { $dynamicRef: _, $recursiveRef: __, ...others } = withoutAnchor(body);
  return { ...others, ...move(reference, embed) };
}

/** Nothing refers to it by its name any more, and the larger schema may have another of that name. */
function withoutAnchor({
  $anchor: _,
  $dynamicAnchor: __,
  $recursiveAnchor: ___,
  ...others
}: JsonSchema): JsonSchema {
  return others;
}

/** The definition that a reference means, moved to the larger schema on first use. */
function move(reference: string, embed: Embedding): JsonSchema {
  const target = findReference(reference, { root: embed.root });
  if (typeof target !== 'object') return { $ref: reference };
  const { $defs: _, definitions: __, ...body } = target;
  const name = reference.split(/[/#]/).at(-1) || embed.root.title?.toString() || 'Schema';
  return embed.definitions.refer(target, name, () => withOwnReferences(body, embed));
}
