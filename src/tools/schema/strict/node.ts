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

/** The strict form of a value, and how badly the node fits: 1 has unknown properties, 2 a wrong part, 3 another kind. */
interface Converted {
  readonly strict: unknown;
  readonly misfit: number;
}

/** Converts an ordinary value to the strict value. A value that does not match does not change. */
export function forwardValue(root: Node, args: unknown): unknown {
  // Each object is converted once for each node, because unions may be nested.
  const known = new Map<Node, WeakMap<object, Converted>>();
  return convert(root, copyOfJson(args)).strict;

  function convert(node: Node, value: unknown): Converted {
    if (node.branches !== undefined) return convertBranch(node.branches, node.tags, value);
    if (!isOfKind(node, value)) return { strict: value, misfit: 3 };
    if (!isObject(value)) return { strict: value, misfit: 0 };
    const ofNode = cached(known, node, () => new WeakMap<object, Converted>());
    return cached(ofNode, value, () => convertParts(node, value));
  }

  /** The branch that fits best; the first of several. */
  function convertBranch(branches: readonly Node[], tags: Node['tags'], value: unknown): Converted {
    const choices = branches.map((branch) => ({ ...convert(branch, value), tag: tags?.get(branch) }));
    const best = choices.reduce((one, other) => (other.misfit < one.misfit ? other : one));
    const { strict, tag, misfit } = best;
    return tag === undefined || misfit === 3 ? best : { strict: { [VARIANT]: tag, [VALUE]: strict }, misfit };
  }

  function convertParts({ items, fields, standsFor }: Node, value: object): Converted {
    let misfit = 0;
    const convertPart = (node: Node, part: unknown): unknown => {
      const converted = convert(node, part);
      misfit = Math.max(misfit, Math.min(2, converted.misfit));
      return converted.strict;
    };
    if (fields === undefined) {
      if (items === undefined) return { strict: value, misfit };
      const strict = Object.entries(value).map(([key, part]) =>
        standsFor === 'record'
          ? { key, [VALUE]: convertPart(valuesOf(items), part) }
          : convertPart(items, part),
      );
      return { strict, misfit };
    }
    const strict = {};
    const { given, others } = split(fields, value);
    for (const field of fields) {
      const { name, node, isRequired } = field;
      if (given.has(field)) {
        const part = convertPart(node, given.get(field));
        setOwn(strict, name, absenceOf(field) === 'wrapped' ? { [VALUE]: part } : part);
      } else if (isRequired) misfit = 2;
      else setOwn(strict, name, null);
    }
    for (const [key, part] of Object.entries(others)) {
      setOwn(strict, key, part);
      misfit ||= 1;
    }
    return { strict, misfit };
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
function isOfKind({ items, fields, standsFor, keywords }: Node, value: unknown): boolean {
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
