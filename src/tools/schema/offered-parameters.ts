import type { JsonSchema } from '../../core/contract/json-schema.js';
import { pointerStep } from '../../core/kernel/json.js';
import { findReference } from './find-reference.js';
import { allSchemas, mapSubschemas } from './keywords.js';

/** Parameters as a provider takes them. */
interface OfferedParameters {
  readonly schema: JsonSchema;
  /** The property that holds the arguments, where they had to be put into one. */
  readonly wrapper?: string;
}

/** What providers refuse at the root, and the whole request with it: a tool takes one object. */
const REFUSED_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'] as const;

const offers = new WeakMap<JsonSchema, OfferedParameters>();

/**
 * Parameters as they are offered to a model: as they are, unless their root is a union or the like. Then they
 * stand in a property, and so do the arguments that the model sends.
 */
export function offeredParameters(parameters: JsonSchema): OfferedParameters {
  const before = offers.get(parameters);
  if (before !== undefined) return before;
  const isTaken = REFUSED_AT_ROOT.every((keyword) => parameters[keyword] === undefined);
  const offered = isTaken ? { schema: parameters } : wrapped(parameters);
  offers.set(parameters, offered);
  return offered;
}

function wrapped(parameters: JsonSchema): OfferedParameters {
  const wrapper = freeName(parameters);
  const { $schema, ...inner } = parameters;
  const definitions = new Definitions();
  const properties = { [wrapper]: embedSchema(inner, definitions) };
  const schema = definitions.attachTo({
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    properties,
    required: [wrapper],
  });
  return { schema, wrapper };
}

/** A name that the arguments themselves cannot have, so that both forms can be distinguished. */
function freeName(parameters: JsonSchema): string {
  const taken = new Set<string>();
  for (const { properties = {} } of allSchemas(parameters))
    for (const name of Object.keys(properties)) taken.add(name);
  let name = 'input';
  for (let count = 2; taken.has(name); count += 1) name = `input_${count}`;
  return name;
}

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

function reference(name: string): JsonSchema {
  return { $ref: `#/$defs/${pointerStep(name)}` };
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
  return [$ref, $dynamicRef, $recursiveRef].find(
    (pointer) => typeof pointer === 'string' && pointer.startsWith('#'),
  ) as string | undefined;
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
