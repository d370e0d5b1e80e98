import type { JsonSchema } from '../contract/json-schema.js';
import { canonicalJson } from '../kernel/json.js';
import { findReference } from '../schema/find-reference.js';
import { eachSubschema, isSchemaNode } from '../schema/keywords.js';
import {
  breaking,
  type CompareWithin,
  keywordChanges,
  nonBreaking,
  type Place,
  type SchemaChange,
  shown,
} from './keyword-changes.js';

/**
 * How a schema of arguments has changed. What cannot be judged keyword by keyword (`not`, `if`, `contains`, another
 * pattern) counts as breaking unless it was taken away; `oneOf` is judged as `anyOf`.
 */
export function schemaChanges(before: JsonSchema, after: JsonSchema): readonly SchemaChange[] {
  return new Comparison(before, after).changes({ before, after, path: '' }, new Pairs());
}

/** Pairs of schemas that were looked at: a recursive schema comes to the same pair again. */
class Pairs {
  readonly #pairs = new Map<JsonSchema, Set<JsonSchema>>();

  /** Whether the pair is new. */
  add(before: JsonSchema, after: JsonSchema): boolean {
    const seen = this.#pairs.get(before) ?? new Set();
    if (seen.has(after)) return false;
    this.#pairs.set(before, seen.add(after));
    return true;
  }
}

class Comparison {
  readonly #roots: Pick<Place, 'before' | 'after'>;
  readonly #resolved = new Map<JsonSchema, JsonSchema>();
  readonly #verdicts = new Map<JsonSchema, Map<JsonSchema, boolean>>();

  constructor(before: JsonSchema, after: JsonSchema) {
    this.#roots = { before, after };
  }

  changes(written: Place, seen: Pairs): readonly SchemaChange[] {
    const { path } = written;
    const before = this.#resolve(written.before, this.#roots.before);
    const after = this.#resolve(written.after, this.#roots.after);
    const place = { before, after, path };
    const words = wordChanges(written, place);
    if (!seen.add(before, after)) return words;
    const within: CompareWithin = (one, other, at) =>
      this.changes({ before: schemaOf(one), after: schemaOf(other), path: at }, seen);
    // Where only the old one has alternatives, each is compared with all of the new one.
    if (hasAlternatives(before) && !hasAlternatives(after)) return [...words, ...this.#joined(place, seen)];
    return [
      ...words,
      ...keywordChanges(place, within),
      ...this.#alternatives(place, seen),
      ...this.#conjuncts(place, seen),
      ...opaqueChanges(place, within),
    ];
  }

  /** A reference is what it leads to; what stands beside it holds too. */
  #resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
    const { $ref, ...rest } = schema;
    if (typeof $ref !== 'string') return schema;
    const known = this.#resolved.get(schema);
    if (known !== undefined) return known;
    // A reference that leads back to itself says nothing.
    this.#resolved.set(schema, schemaOf(true));
    const target = schemaOf(findReference($ref, { root, from: schema }));
    const isBare = Object.keys(rest).every((name) => WORDS.has(name) || IGNORED.has(name));
    const resolved = isBare
      ? this.#resolve(target, root)
      : { ...rest, allOf: [...listOf(rest.allOf), target] };
    this.#resolved.set(schema, resolved);
    return resolved;
  }

  /** Whether everything that fits one schema fits the other. */
  #isCovered(before: JsonSchema, after: JsonSchema): boolean {
    const verdicts = this.#verdicts.get(before) ?? new Map<JsonSchema, boolean>();
    const known = verdicts.get(after);
    if (known !== undefined) return known;
    this.#verdicts.set(before, verdicts.set(after, true));
    const changes = this.changes({ before, after, path: '' }, new Pairs());
    const isCovered = !changes.some(({ kind }) => kind === 'breaking');
    verdicts.set(after, isCovered);
    return isCovered;
  }

  #joined({ before, after, path }: Place, seen: Pairs): readonly SchemaChange[] {
    const { anyOf: _any, oneOf: _one, ...siblings } = before;
    const changes = alternativesOf(before).flatMap((alternative, index) => {
      const one = { ...siblings, ...alternative };
      return this.changes({ before: one, after, path: `${path}(${index + 1})` }, seen);
    });
    return [...changes, nonBreaking(path, 'alternatives became one schema')];
  }

  /** Each of the old alternatives has to fit into one of the new ones. */
  #alternatives({ before, after, path }: Place, seen: Pairs): readonly SchemaChange[] {
    if (!hasAlternatives(after)) return [];
    const [old, now] = [alternativesOf(before), alternativesOf(after)];
    const changes = old.flatMap((alternative, index) => {
      const twin = old.length === now.length ? now[index] : undefined;
      const isCovered = now.some((other) => this.#isCovered(alternative, other));
      if (twin !== undefined && (!isCovered || this.#isCovered(alternative, twin)))
        return this.changes({ before: alternative, after: twin, path: `${path}(${index + 1})` }, seen);
      return isCovered ? [] : [breaking(path, `alternative removed: ${shown(alternative)}`)];
    });
    if ('oneOf' in after && !('oneOf' in before) && 'anyOf' in before)
      return [...changes, breaking(path, 'anyOf became oneOf')];
    if (old.length === now.length) return changes;
    return [...changes, nonBreaking(path, `alternatives changed from ${old.length} to ${now.length}`)];
  }

  /** Each of the new parts has to follow from an old one, or from what stands beside them. */
  #conjuncts({ before, after, path }: Place, seen: Pairs): readonly SchemaChange[] {
    const { allOf, ...siblings } = before;
    const [old, now] = [listOf(allOf).map(schemaOf), listOf(after.allOf).map(schemaOf)];
    const changes = now.flatMap((part, index) => {
      const twin = old[index];
      const follows = [...old, siblings].some((other) => this.#isCovered(other, part));
      if (twin !== undefined && (!follows || this.#isCovered(twin, part)))
        return this.changes({ before: twin, after: part, path }, seen);
      return follows ? [] : [breaking(path, `allOf has one more: ${shown(part)}`)];
    });
    return now.length < old.length ? [...changes, nonBreaking(path, 'allOf has fewer')] : changes;
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function hasAlternatives(schema: JsonSchema): boolean {
  return Array.isArray(schema.anyOf) || Array.isArray(schema.oneOf);
}

/** Of a schema without alternatives its types or its values are some: `["string", "null"]`. */
function alternativesOf(schema: JsonSchema): readonly JsonSchema[] {
  const { anyOf, oneOf, enum: values, ...rest } = schema;
  if (Array.isArray(anyOf ?? oneOf)) return listOf(anyOf ?? oneOf).map(schemaOf);
  if (Array.isArray(values)) return values.map((value: unknown) => ({ ...rest, const: value }));
  if (Array.isArray(rest.type)) return rest.type.map((type: string) => ({ ...rest, type }));
  return [schema];
}

/** Keywords that judge nothing. */
const WORDS = new Set([
  ...['title', 'description', 'examples', '$comment', 'deprecated', 'readOnly', 'writeOnly'],
  ...['contentEncoding', 'contentMediaType', 'contentSchema'],
]);
const IGNORED = new Set(['$schema', '$id', '$anchor', '$dynamicAnchor', '$defs', 'definitions', 'default']);

/** Of the schemas as they are written, since a reference may have words of its own, and of what they lead to. */
function wordChanges(written: Place, { before, after, path }: Place): readonly SchemaChange[] {
  const words = [...WORDS].filter(
    (name) => !isSame(written.before[name], written.after[name]) || !isSame(before[name], after[name]),
  );
  const changes = words.map((name) => ({ kind: 'wording' as const, path, what: `${name} changed` }));
  if (isSame(before.default, after.default)) return changes;
  const what = `default changed from ${shown(before.default)} to ${shown(after.default)}`;
  return [...changes, nonBreaking(path, what)];
}

function isSame(one: unknown, other: unknown): boolean {
  if (one === undefined || other === undefined) return one === other;
  return canonicalJson(one) === canonicalJson(other);
}

/** Keywords that hold only together: another one of them may refuse what was let through before. */
const OPAQUE: readonly (readonly string[])[] = [
  ['not'],
  ['if', 'then', 'else'],
  ['contains', 'minContains', 'maxContains'],
  ['dependentRequired'],
  ['dependentSchemas'],
  ['dependencies'],
  ['unevaluatedProperties'],
  ['unevaluatedItems'],
  ['$dynamicRef'],
  ['$recursiveRef'],
];

function opaqueChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
  return OPAQUE.flatMap((group) => {
    const [old, now] = [picked(before, group), picked(after, group)];
    const [first = ''] = group;
    if (!isSame(old, now)) {
      const isGone = !(first in now);
      return [isGone ? nonBreaking(path, `${first} removed`) : breaking(path, `${first} changed`)];
    }
    // The same words, which may lead to other schemas.
    const others = partsOf(now);
    const changes = [...partsOf(old)].flatMap(([name, part]) =>
      within(part, others.get(name), `${path}(${first})`),
    );
    return changes.map((change) =>
      change.kind === 'wording' ? change : breaking(change.path, `${first}: ${change.what}`),
    );
  });
}

function picked(schema: JsonSchema, names: readonly string[]): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => names.includes(name)));
}

/** The schemas directly within one, by where they stand. */
function partsOf(schema: JsonSchema): ReadonlyMap<string, unknown> {
  const parts = new Map<string, unknown>();
  eachSubschema(schema, ({ node, name, key }) => parts.set(`${name} ${key}`, node));
  return parts;
}

const EVERYTHING: JsonSchema = Object.freeze({});
const NOTHING: JsonSchema = Object.freeze({ enum: Object.freeze([]) });

/** What stands where a schema should, as one. */
function schemaOf(node: unknown): JsonSchema {
  if (node === false) return NOTHING;
  return isSchemaNode(node) ? node : EVERYTHING;
}
