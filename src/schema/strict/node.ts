import type { JsonSchema } from '../../contract/json-schema.js';
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

/** A change at one place; `said` if the description states a keyword, which the validation of the call applies. */
export type Edit = { readonly kind: EditKind } | { readonly kind: 'said'; readonly keyword: string };

/** A part of the strict schema, linked to its parts directly, with the changes from which it is restored. */
export interface Node {
  /** The name of its definition, if it needs one. */
  name?: string | undefined;
  description: string;
  edits: readonly Edit[];
  /** Everything but the description and the parts. A node with an empty `enum` fits nothing. */
  keywords: JsonSchema;
  items?: Node;
  /** Which ordinary value a strict list or object stands for, if it is not the same. */
  standsFor?: 'record' | 'tuple';
  fields?: readonly Field[];
  /** A single branch is the same value at another place, where more is stated about it. */
  branches?: readonly Node[] | undefined;
  /** The tag of each branch with parts, if restoring could otherwise confuse branches. */
  tags?: ReadonlyMap<Node, string>;
  defaultsToNull?: boolean;
  /** The definition of any value, which the given schema does not contain. */
  isBuiltIn?: boolean;
}

/** A property, or a place of a tuple. */
export interface Field {
  readonly name: string;
  readonly node: Node;
  readonly isRequired: boolean;
  /** Holds the properties without a field as a record, or the items without a place as a list. */
  readonly isRest?: boolean;
}

export function nodeOf(keywords: JsonSchema, rest: Partial<Node> = {}): Node {
  return { description: '', edits: [], keywords, ...rest };
}

export const NEVER: Node = nodeOf({ enum: [] });

/** The node that single branches lead to. */
export function target(node: Node): Node {
  const [only, ...others] = node.branches ?? [];
  return only !== undefined && others.length === 0 ? target(only) : node;
}

export function isNever(node: Node): boolean {
  return target(node).keywords.enum?.length === 0;
}

/** The nodes directly within a node. */
export function partsOf({ items, fields = [], branches = [] }: Node): readonly Node[] {
  return [...(items === undefined ? [] : [items]), ...fields.map(({ node }) => node), ...branches];
}

/** Texts of a description as one, each once. */
export function joined(...texts: readonly (string | undefined)[]): string {
  return [...new Set(texts.filter((text) => text !== undefined && text !== ''))].join('\n');
}

/** How a strict object says that a field is absent: not at all, by `null`, or by `null` instead of `{ value }`. */
export function absenceOf({ node, isRequired }: Field): 'never' | 'null' | 'wrapped' {
  if (isRequired) return 'never';
  if (!allowsNull(node)) return 'null';
  // Absent and null mean the same.
  return defaultsToNull(node) ? 'never' : 'wrapped';
}

function allowsNull({ branches, keywords }: Node): boolean {
  return branches?.some(allowsNull) ?? (keywords.type === 'null' && keywords.enum === undefined);
}

function defaultsToNull(node: Node): boolean {
  const next = node.branches?.length === 1 ? node.branches[0] : undefined;
  return node.defaultsToNull ?? (next !== undefined && defaultsToNull(next));
}

/** The property that holds a value beside a tag, or a value that may itself be `null`. */
export const VALUE = 'value';
/** The property that holds the tag of a branch. */
export const VARIANT = 'variant';

/** The property for a place of a tuple. */
export function placeName(index: number): string {
  return `item_${index + 1}`;
}

const ANYTHING: JsonSchema = {};
const NOTHING: JsonSchema = { not: {} };

/** The schema at a place that should hold one; `false` becomes a schema that nothing fits. */
export function asSchema(node: unknown): JsonSchema {
  if (isSchemaNode(node)) return node;
  return node === false ? NOTHING : ANYTHING;
}
