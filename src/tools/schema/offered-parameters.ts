import type { JsonSchema } from '../../core/contract/json-schema.js';
import { freeName } from '../../core/kernel/free-name.js';
import { pointerStep } from '../../core/kernel/json.js';
import { findReference } from './find-reference.js';
import { allSchemas, mapSubschemas } from './keywords.js';

/** Parameters in a form that providers accept. */
interface OfferedParameters {
  readonly schema: JsonSchema;
  /** The property that contains the arguments, if they had to be wrapped. */
  readonly wrapper?: string;
}

/** Root keywords for which providers refuse the whole request: a tool takes one object. */
const REFUSED_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'] as const;

const offers = new WeakMap<JsonSchema, OfferedParameters>();

/**
 * The parameters to offer to a model: unchanged, unless their root is a union or similar. Then they are wrapped in a
 * property, as are the arguments that the model sends.
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
  const wrapper = wrapperName(parameters);
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
function wrapperName(parameters: JsonSchema): string {
  const taken = new Set<string>();
  for (const { properties = {} } of allSchemas(parameters))
    for (const name of Object.keys(properties)) taken.add(name);
  return freeName('input', (name) => taken.has(name), '_');
}

/** The `$defs` of a schema that is being written. Names depend only on the order of first appearance. */
export class Definitions {
  readonly #names = new Map<unknown, string>();
  readonly #schemas = new Map<string, JsonSchema>();

  /** A reference to the definition of `owner`, which is written at its first reference. */
  refer(owner: unknown, wanted: string, write: () => JsonSchema): JsonSchema {
    const before = this.#names.get(owner);
    if (before !== undefined) return reference(before);
    const name = freeName(wanted === '' ? 'Object' : wanted, (taken) => this.#schemas.has(taken));
    this.#names.set(owner, name);
    // Reserved before writing, because it may refer to itself.
    this.#schemas.set(name, {});
    this.#schemas.set(name, write());
    return reference(name);
  }

  /** The schema with `$defs`, if there are any. */
  attachTo(schema: JsonSchema): JsonSchema {
    return this.#schemas.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(this.#schemas) };
  }
}

function reference(name: string): JsonSchema {
  return { $ref: `#/$defs/${pointerStep(name)}` };
}

/**
 * Embeds an explicit schema in a larger one. References into itself (`#`, `#/$defs/Node`) would point into the larger
 * schema, so their targets move to its `$defs`. A schema without such references does not change, nor does a schema
 * with an `$id`, because its references are relative to that.
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

/** In a single schema, a dynamic reference means the same as a plain one. */
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

/** The anchor is no longer used, and the larger schema may have the same anchor. */
function withoutAnchor({
  $anchor: _,
  $dynamicAnchor: __,
  $recursiveAnchor: ___,
  ...others
}: JsonSchema): JsonSchema {
  return others;
}

/** The target of a reference, moved to the larger schema on first use. */
function move(reference: string, embed: Embedding): JsonSchema {
  const target = findReference(reference, { root: embed.root });
  if (typeof target !== 'object') return { $ref: reference };
  const { $defs: _, definitions: __, ...body } = target;
  const name = reference.split(/[/#]/).at(-1) || embed.root.title?.toString() || 'Schema';
  return embed.definitions.refer(target, name, () => withOwnReferences(body, embed));
}
