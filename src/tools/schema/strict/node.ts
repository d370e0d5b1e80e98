import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import { copyOfJson, type Fields, isObject, isRecord, jsonType, setOwn } from '../../../core/kernel/json.js';
import { isSchemaNode } from '../keywords.js';

/** How a part of a schema was rewritten. */
export type EditKind =
  | 'anything'
  | 'closed'
  | 'constant'
  | 'merged'
  | 'narrowed'
  | 'nullable'
  | 'optional-null'
  | 'pairs'
  | 'rest'
  | 'root'
  | 'tagged'
  | 'tuple'
  | 'type'
  | 'union';

/** A change at one place. `said`: the description states a keyword, which the check of the call applies. */
export type Edit = { readonly kind: EditKind } | { readonly kind: 'said'; readonly keyword: string };

/** A part of the strict schema, with direct links to its parts, and the changes that are needed to restore values. */
export interface Node {
  /** The name of its definition, if it needs one. */
  name?: string | undefined;
  description: string;
  edits: readonly Edit[];
  /** All keywords except the description and the parts. A node with an empty `enum` accepts no value. */
  keywords: JsonSchema;
  items?: Node;
  /** The kind of ordinary value that a strict array or object represents, if it differs. */
  standsFor?: 'record' | 'tuple';
  fields?: readonly Field[];
  /** A single branch is the same value with an additional description. */
  branches?: readonly Node[] | undefined;
  /** The tag of each branch with parts, if branches could otherwise be confused. */
  tags?: ReadonlyMap<Node, string>;
  defaultsToNull?: boolean;
  /** The definition of any value, which the original schema does not contain. */
  isBuiltIn?: boolean;
}

/** A property, or a position of a tuple. */
export interface Field {
  readonly name: string;
  readonly node: Node;
  readonly isRequired: boolean;
  /** Contains the properties without a field as a record, or the remaining items as an array. */
  readonly isRest?: boolean;
}

export function nodeOf(keywords: JsonSchema, rest: Partial<Node> = {}): Node {
  return { description: '', edits: [], keywords, ...rest };
}

export const NEVER: Node = nodeOf({ enum: [] });

/** Follows single branches to their node. */
export function target(node: Node): Node {
  const [only, ...others] = node.branches ?? [];
  return only !== undefined && others.length === 0 ? target(only) : node;
}

export function isNever(node: Node): boolean {
  return target(node).keywords.enum?.length === 0;
}

/** The direct children of a node. */
export function childrenOf({ items, fields = [], branches = [] }: Node): readonly Node[] {
  return [...(items === undefined ? [] : [items]), ...fields.map(({ node }) => node), ...branches];
}

/** Joins descriptions without duplicates. */
export function joined(...texts: readonly (string | undefined)[]): string {
  return [...new Set(texts.filter((text) => text !== undefined && text !== ''))].join('\n');
}

/** How a strict object marks an absent field: never, by `null`, or by `null` instead of `{ value }`. */
export function absenceOf({ node, isRequired }: Field): 'never' | 'null' | 'wrapped' {
  if (isRequired) return 'never';
  if (!allowsNull(node)) return 'null';
  // Absent and `null` mean the same.
  return defaultsToNull(node) ? 'never' : 'wrapped';
}

function allowsNull({ branches, keywords }: Node): boolean {
  return branches?.some(allowsNull) ?? (keywords.type === 'null' && keywords.enum === undefined);
}

function defaultsToNull(node: Node): boolean {
  const next = node.branches?.length === 1 ? node.branches[0] : undefined;
  return node.defaultsToNull ?? (next !== undefined && defaultsToNull(next));
}

/** The property that contains a value beside a tag, or a value that may itself be `null`. */
export const VALUE = 'value';
/** The property that contains the tag of a branch. */
export const VARIANT = 'variant';

/** The property for a position of a tuple. */
export function placeName(index: number): string {
  return `item_${index + 1}`;
}

const ANY_VALUE: JsonSchema = {};
const NO_VALUE: JsonSchema = { not: {} };

/** The schema in a schema position; `false` becomes a schema that accepts no value. */
export function asSchema(node: unknown): JsonSchema {
  if (isSchemaNode(node)) return node;
  return node === false ? NO_VALUE : ANY_VALUE;
}

/**
 * Converts a strict value to the ordinary value. A value that is not strict does not change; the validation reports
 * it.
 */
export function restoreValue(node: Node, value: unknown): unknown {
  if (!isObject(value)) return value;
  const { items, fields, branches, standsFor } = node;
  let restored: unknown;
  if (branches !== undefined) restored = restoreBranch(node, value);
  else if (items !== undefined && Array.isArray(value))
    restored =
      standsFor === 'record' ? restorePairs(items, value) : value.map((item) => restoreValue(items, item));
  else if (fields !== undefined && isRecord(value))
    restored = standsFor === 'tuple' ? restoreTuple(fields, value) : restoreObject(fields, value);
  return restored ?? copyOfJson(value);
}

function restoreBranch({ branches = [], tags }: Node, value: object): unknown {
  if (tags !== undefined) {
    if (!isRecord(value) || !hasOnly(value, [VARIANT, VALUE])) return undefined;
    const tagged = branches.find((branch) => tags.get(branch) === value[VARIANT]);
    return tagged && restoreValue(tagged, value[VALUE]);
  }
  if (Array.isArray(value) || branches.length === 1) {
    const list = branches.length === 1 ? branches[0] : branches.find((branch) => target(branch).items);
    return list && restoreValue(list, value);
  }
  // The object with exactly these keys, or the only one whose constants do not exclude the value.
  const possible = branches.filter((branch) =>
    target(branch).fields?.every((field) => mayHold(field, value)),
  );
  const isExact = (branch: Node): boolean =>
    hasOnly(
      value,
      target(branch).fields?.map(({ name }) => name),
    );
  const branch = possible.find(isExact) ?? (possible.length === 1 ? possible[0] : undefined);
  return branch && restoreValue(branch, value);
}

function mayHold({ name, node }: Field, value: object): boolean {
  const given = Object.hasOwn(value, name) ? (value as Fields)[name] : null;
  return given === null || (target(node).keywords.enum?.includes(given) ?? true);
}

/** The object of a list of pairs; `undefined` if a pair is malformed or a key occurs twice. */
function restorePairs(pairNode: Node, pairs: readonly unknown[]): object | undefined {
  const keys = new Set<unknown>();
  // Check all pairs first, so that no restored value is discarded.
  for (const pair of pairs) {
    if (!isRecord(pair) || !hasOnly(pair, ['key', VALUE])) return undefined;
    if (typeof pair.key !== 'string' || keys.has(pair.key)) return undefined;
    keys.add(pair.key);
  }
  const values = valuesOf(pairNode);
  return Object.fromEntries(
    (pairs as readonly Fields[]).map((pair) => [pair.key, restoreValue(values, pair[VALUE])]),
  );
}

function valuesOf({ fields = [] }: Node): Node {
  return fields[1]?.node as Node;
}

function restoreObject(fields: readonly Field[], value: Fields): object {
  const byName = new Map(fields.map((field) => [field.name, field]));
  const object = {};
  for (const [key, part] of Object.entries(value)) {
    const field = byName.get(key);
    if (field === undefined) setOwn(object, key, copyOfJson(part));
    else if (!field.isRest && !isAbsent(field, part)) setOwn(object, key, restoreField(field, part));
  }
  const rest = fields.at(-1);
  if (!rest?.isRest || !Object.hasOwn(value, rest.name)) return object;
  const pairs = value[rest.name];
  const others = Array.isArray(pairs) ? restoreValue(rest.node, pairs) : undefined;
  if (!isRecord(others) || Object.keys(others).some((key) => Object.hasOwn(object, key)))
    setOwn(object, rest.name, copyOfJson(pairs));
  else for (const [key, part] of Object.entries(others)) setOwn(object, key, part);
  return object;
}

/** The array of a tuple; `undefined` if positions are missing or a property is unknown. */
function restoreTuple(fields: readonly Field[], value: Fields): readonly unknown[] | undefined {
  const names = new Set(fields.map(({ name }) => name));
  if (!Object.keys(value).every((key) => names.has(key))) return undefined;
  const isGiven = fields.map((field) => {
    const part = Object.hasOwn(value, field.name) ? value[field.name] : undefined;
    if (field.isRest) return part !== undefined && !(Array.isArray(part) && part.length === 0);
    return part !== undefined && !isAbsent(field, part);
  });
  const count = isGiven.includes(false) ? isGiven.indexOf(false) : fields.length;
  if (isGiven.includes(true, count)) return undefined;
  const parts = fields.slice(0, count).map((field) => restoreField(field, value[field.name]));
  if (count === 0 || !fields[count - 1]?.isRest) return parts;
  const others = parts.pop();
  return Array.isArray(others) ? [...parts, ...others] : undefined;
}

function isAbsent(field: Field, value: unknown): boolean {
  return value === null && absenceOf(field) !== 'never';
}

function restoreField(field: Field, value: unknown): unknown {
  const isWrapped = absenceOf(field) === 'wrapped' && isRecord(value) && hasOnly(value, [VALUE]);
  return restoreValue(field.node, isWrapped ? value[VALUE] : value);
}

function hasOnly(value: object, names: readonly string[] = []): boolean {
  return Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

/** Converts an ordinary value to the strict value. A value that does not match does not change. */
export function forwardValue(root: Node, args: unknown): unknown {
  const exact = new FitTest(true);
  const loose = new FitTest(false);
  return convert(root, args);

  function convert(node: Node, value: unknown): unknown {
    const { items, fields, branches } = node;
    if (branches !== undefined) return convertBranch(node, branches, value);
    if (!isObject(value) || !isOfKind(node, value)) return copyOfJson(value);
    if (fields !== undefined) return convertFields(fields, value);
    if (items === undefined) return copyOfJson(value);
    if (Array.isArray(value)) return value.map((item) => convert(items, item));
    const values = valuesOf(items);
    return Object.entries(value).map(([key, part]) => ({ key, [VALUE]: convert(values, part) }));
  }

  function convertFields(fields: readonly Field[], value: object): object {
    const strict = {};
    const { given, others } = split(fields, value);
    for (const field of fields) {
      const isGiven = given.has(field);
      const part = isGiven ? convert(field.node, given.get(field)) : null;
      const isWrapped = isGiven && absenceOf(field) === 'wrapped';
      if (isGiven || !field.isRequired) setOwn(strict, field.name, isWrapped ? { [VALUE]: part } : part);
    }
    for (const [key, part] of Object.entries(others)) setOwn(strict, key, copyOfJson(part));
    return strict;
  }

  function convertBranch({ tags }: Node, branches: readonly Node[], value: unknown): unknown {
    const candidates = branches.filter((branch) => isOfKind(branch, value));
    const branch =
      candidates.length < 2
        ? candidates[0]
        : (candidates.find((each) => exact.fits(each, value)) ??
          candidates.find((each) => loose.fits(each, value)) ??
          candidates[0]);
    if (branch === undefined) return copyOfJson(value);
    const tag = tags?.get(branch);
    const strict = convert(branch, value);
    return tag === undefined ? strict : { [VARIANT]: tag, [VALUE]: strict };
  }
}

/** Splits an ordinary value into its fields and the remaining properties or items. */
function split(
  fields: readonly Field[],
  value: object,
): { readonly given: ReadonlyMap<Field, unknown>; readonly others: object } {
  const rest = fields.find(({ isRest }) => isRest);
  const named = fields.filter(({ isRest }) => !isRest);
  const given = new Map<Field, unknown>();
  let others: object = {};
  if (Array.isArray(value)) {
    for (const [index, field] of named.slice(0, value.length).entries()) given.set(field, value[index]);
    others = value.slice(named.length);
  } else {
    const byName = new Map(named.map((field) => [field.name, field]));
    for (const [key, part] of Object.entries(value)) {
      const field = byName.get(key);
      if (field === undefined) setOwn(others, key, part);
      else given.set(field, part);
    }
  }
  if (rest === undefined) return { given, others };
  given.set(rest, others);
  return { given, others: {} };
}

/** Whether an ordinary value has the kind of a node, without checking its parts. */
function isOfKind({ items, fields, branches, standsFor, keywords }: Node, value: unknown): boolean {
  if (branches !== undefined) return branches.some((branch) => isOfKind(branch, value));
  if (standsFor === 'tuple') {
    const isOpen = fields?.at(-1)?.isRest ?? false;
    return Array.isArray(value) && (isOpen || value.length <= (fields?.length ?? 0));
  }
  if (fields !== undefined || standsFor === 'record') return isRecord(value);
  if (items !== undefined) return Array.isArray(value);
  if (keywords.enum !== undefined && !keywords.enum.includes(value)) return false;
  if (keywords.type === 'integer') return Number.isInteger(value);
  return jsonType(value) === keywords.type;
}

/** Whether an ordinary value has the form of a node. Exact: without unknown properties. */
class FitTest {
  readonly #isExact: boolean;
  /** Each object is tested once for each node, because unions may be nested. */
  readonly #known = new Map<Node, WeakMap<object, boolean>>();

  constructor(isExact: boolean) {
    this.#isExact = isExact;
  }

  fits(node: Node, value: unknown): boolean {
    if (!isOfKind(node, value)) return false;
    if (!isObject(value)) return true;
    const known = cached(this.#known, node, () => new WeakMap<object, boolean>());
    return cached(known, value, () => this.#partsFit(node, value));
  }

  #partsFit({ items, fields, branches, standsFor }: Node, value: object): boolean {
    if (branches !== undefined) return branches.some((branch) => this.fits(branch, value));
    if (items !== undefined) {
      const node = standsFor === 'record' ? valuesOf(items) : items;
      return Object.values(value).every((part) => this.fits(node, part));
    }
    const { given, others } = split(fields ?? [], value);
    const fit = (field: Field): boolean =>
      given.has(field) ? this.fits(field.node, given.get(field)) : !field.isRequired;
    return (!this.#isExact || Object.keys(others).length === 0) && (fields ?? []).every(fit);
  }
}
