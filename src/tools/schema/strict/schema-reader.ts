import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import { canonicalJson, filterFields, isRecord, jsonType } from '../../../core/kernel/json.js';
import { findReference, isSchemaNode, KEYWORDS, mergeKeywords, regularExpression } from '../keywords.js';

/**
 * How a part of a schema was rewritten. `said`: the description states a keyword, which the check of the call
 * applies.
 */
export type Edit =
  | {
      readonly kind:
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
    }
  | { readonly kind: 'said'; readonly keyword: string };

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

function nodeOf(keywords: JsonSchema, rest: Partial<Node> = {}): Node {
  return { description: '', edits: [], keywords, ...rest };
}

const NEVER: Node = nodeOf({ enum: [] });

/** Follows single branches to their node. */
export function target(node: Node): Node {
  const [only, ...others] = node.branches ?? [];
  return only !== undefined && others.length === 0 ? target(only) : node;
}

function isNever(node: Node): boolean {
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

/** The property that contains a value beside a tag, or a value that may itself be `null`. */
export const VALUE = 'value';

/** The property for a position of a tuple. */
function placeName(index: number): string {
  return `item_${index + 1}`;
}

/** The schema in a schema position; `false` becomes a schema that accepts no value. */
function asSchema(node: unknown): JsonSchema {
  if (isSchemaNode(node)) return node;
  return node === false ? NO_VALUE : ANY_VALUE;
}

const ANY_VALUE: JsonSchema = {};
const NO_VALUE: JsonSchema = { not: {} };

/** A keyword that strict schemas do not support, as a sentence. */
interface Remark {
  readonly keyword: string;
  readonly text: string;
}

/** Keywords that constrain nothing. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['default', 'examples', 'deprecated']);

/** Adds remarks to the description of a node. */
function withRemarks(node: Node, remarks: readonly Remark[]): Node {
  const edits = [...node.edits];
  for (const { keyword } of remarks) if (!ANNOTATIONS.has(keyword)) edits.push({ kind: 'said', keyword });
  return { ...node, description: joined(node.description, ...remarks.map(({ text }) => text)), edits };
}

/** String formats that strict schemas support. */
const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]);

/** Look-arounds, back references, Unicode classes and word boundaries, which token grammars do not support. */
const BEYOND_REGULAR = /\(\?(?![:])|\\[1-9kpPbB]/;

/** Whether a strict schema supports a keyword with this value. */
function isExpressible(keyword: string, value: unknown): boolean {
  if (keyword === 'format') return FORMATS.has(value);
  if (keyword === 'pattern')
    return typeof value === 'string' && !BEYOND_REGULAR.test(value) && regularExpression(value) !== undefined;
  if (keyword === 'minItems' || keyword === 'maxItems') return Number.isInteger(value) && Number(value) >= 0;
  const isNumber = KEYWORDS.get(keyword)?.of === 'number' && typeof value === 'number';
  return isNumber && (keyword !== 'multipleOf' || value > 0);
}

/** Keywords that determine the form of a value. */
const STRUCTURAL: ReadonlySet<string> = new Set([
  ...['contentSchema', 'items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'properties'],
  ...['patternProperties', 'additionalProperties', 'unevaluatedProperties', 'required'],
]);

/** The keywords for one type: the strictest supported value of each, and remarks for the others. */
function keywordsFor(
  parts: readonly JsonSchema[],
  group: 'string' | 'number' | 'array' | 'object',
): { readonly keywords: JsonSchema; readonly remarks: readonly Remark[] } {
  let merged: JsonSchema = {};
  const others: (readonly [keyword: string, value: unknown])[] = [];
  for (const [keyword, value] of parts.flatMap((part) => Object.entries(part))) {
    if (KEYWORDS.get(keyword)?.of !== group || STRUCTURAL.has(keyword)) continue;
    if (isExpressible(keyword, value)) merged = mergeKeywords(merged, { [keyword]: value });
    else others.push([keyword, value]);
  }
  const { allOf: unmerged = [], ...keywords } = merged;
  for (const part of unmerged as readonly JsonSchema[]) others.push(...Object.entries(part));
  return { keywords, remarks: others.flatMap(([keyword, value]) => remarkOn(keyword, value)) };
}

const MOST_CHARACTERS = 300;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

function listed(values: unknown): string {
  return Array.isArray(values) ? values.map(shown).join(', ') : shown(values);
}

/** The sentences for keywords, with `%` for their value; other keywords are shown as JSON. */
const SENTENCES: Readonly<Record<string, string | ((value: unknown) => string)>> = {
  minLength: 'At least % characters.',
  maxLength: 'At most % characters.',
  pattern: 'Matches the pattern %.',
  format: 'Format: %.',
  contentEncoding: 'Encoded as %.',
  contentMediaType: 'Media type: %.',
  minItems: 'At least % items.',
  maxItems: 'At most % items.',
  contains: 'Contains an item that fits %.',
  minContains: 'At least % such items.',
  maxContains: 'At most % such items.',
  minProperties: 'At least % properties.',
  maxProperties: 'At most % properties.',
  multipleOf: 'A multiple of %.',
  propertyNames: 'Keys fit %.',
  not: 'Must not fit %.',
  anyOf: 'Fits at least one of %.',
  oneOf: 'Fits exactly one of %.',
  default: 'Default: %.',
  uniqueItems: (value) => (value === true ? 'No two items are equal.' : ''),
  deprecated: (value) => (value === true ? 'Deprecated.' : ''),
  examples: (value) => `For example ${listed(value)}.`,
  dependentRequired: (value) =>
    Object.entries(Object(value))
      .filter(([, names]) => Array.isArray(names))
      .map(([name, names]) => `With ${shown(name)} also ${listed(names)}.`)
      .join(' '),
};

/** The remark for a keyword; empty for a value without effect. */
function remarkOn(keyword: string, value: unknown): readonly Remark[] {
  if (value === undefined) return [];
  const text = sentenceFor(keyword, value);
  return text === '' ? [] : [{ keyword, text }];
}

function sentenceFor(keyword: string, value: unknown): string {
  const sentence = SENTENCES[keyword];
  if (sentence === undefined) return `JSON Schema: ${shown({ [keyword]: value })}.`;
  if (typeof sentence === 'function') return sentence(value);
  // A default is a value, the other texts are names.
  const isName = typeof value === 'string' && keyword !== 'default';
  return sentence.replace('%', () => (isName ? value : shown(value)));
}

/** Larger schemas are refused, because unions multiply the keywords beside them. */
const MOST_NODES = 20_000;

/** Keywords that need no remark: they constrain nothing, or are followed. */
const SILENT: ReadonlySet<string> = new Set([
  ...['$ref', 'allOf'],
  ...['$id', '$schema', '$comment', '$anchor', '$dynamicAnchor', '$recursiveAnchor', '$defs', 'definitions'],
  ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$async'],
]);

/** Keywords that give a branch of a union its own form; the others are conditions. */
const FORMING: ReadonlySet<string> = new Set([
  ...['$ref', 'allOf', 'anyOf', 'oneOf', 'type', 'enum', 'const', 'properties', 'additionalProperties'],
  ...['patternProperties', 'items', 'prefixItems', 'minItems', 'maxItems', 'pattern', 'format'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);

/** A union that determines the form of a value. */
interface Branching {
  readonly holder: JsonSchema;
  readonly keyword: 'anyOf' | 'oneOf';
  readonly branches: readonly JsonSchema[];
}

/** Reads a schema into nodes of the strict schema. */
export class SchemaReader {
  /** Why the schema has no strict form. */
  readonly faults = new Set<string>();
  /** Whether objects with named properties accept additional properties that the schema does not describe. */
  readonly #takesOthers: boolean;
  /** An object with any keys and any values. */
  readonly #entries = nodeOf({ type: 'array' }, { name: 'any_entries', isBuiltIn: true });
  readonly #root: JsonSchema;
  readonly #names = new Map<JsonSchema, string>();
  readonly #ids = new Map<JsonSchema, number>();
  readonly #nodes = new Map<string, Node>();
  readonly #bared = new WeakMap<JsonSchema, Map<string, JsonSchema>>();

  constructor(root: JsonSchema, takesOthers: boolean) {
    this.#root = root;
    this.#takesOthers = takesOthers;
    for (const keyword of ['definitions', '$defs'] as const)
      for (const [name, schema] of Object.entries(Object(root[keyword])))
        this.#names.set(asSchema(schema), name);
  }

  /** The node of the whole schema. */
  readRoot(): Node {
    const root = this.#read([this.#root]);
    this.#flattenUnions(root, new Set());
    if (isNever(root) && this.faults.size === 0) this.faults.add('no arguments fit it');
    return root;
  }

  /** The node for schemas that all apply. */
  #read(schemas: readonly JsonSchema[]): Node {
    const { parts, annotations } = this.#collect(schemas);
    for (const part of parts) if (!this.#ids.has(part)) this.#ids.set(part, this.#ids.size);
    const key = parts.map((part) => this.#ids.get(part)).join();
    let node = this.#nodes.get(key);
    if (node === undefined) {
      const isRoot = this.#nodes.size === 0;
      const [first, ...others] = parts;
      const title = typeof first?.title === 'string' ? first.title : undefined;
      const name = first && others.length === 0 ? (this.#names.get(first) ?? title) : undefined;
      // Stored before its parts are read, because they may contain it.
      node = nodeOf({}, { name });
      this.#nodes.set(key, node);
      if (this.#nodes.size > MOST_NODES) this.faults.add('it has too many parts');
      // A schema with a fault is refused anyway.
      Object.assign(node, this.faults.size > 0 ? NEVER : this.#build(parts, isRoot));
    }
    const annotated = annotate(nodeOf({}, { branches: [node] }), annotations);
    return annotated.description === '' ? node : annotated;
  }

  /** Follows references and `allOf`. Separates schemas that constrain the value from those that only annotate it. */
  #collect(schemas: readonly JsonSchema[]): {
    readonly parts: readonly JsonSchema[];
    readonly annotations: readonly JsonSchema[];
  } {
    const seen = new Set<JsonSchema>();
    const path = new Set<JsonSchema>();
    const parts: JsonSchema[] = [];
    const annotations: JsonSchema[] = [];
    const visit = (schema: JsonSchema): void => {
      if (path.has(schema)) this.faults.add('a reference leads to itself');
      if (seen.has(schema)) return;
      seen.add(schema);
      path.add(schema);
      (constrains(schema) ? parts : annotations).push(schema);
      for (const keyword of ['$dynamicRef', '$recursiveRef'])
        if (keyword in schema) this.faults.add(`${keyword} depends on where the schema is used`);
      const { $ref, allOf, anyOf, oneOf } = schema;
      if (typeof $ref === 'string') {
        const referred = findReference($ref, this.#root, schema);
        if (referred === undefined) this.faults.add(`the reference ${$ref} leads nowhere within the schema`);
        visit(asSchema(referred));
      }
      for (const list of [allOf, anyOf, oneOf])
        if (Array.isArray(list) && (list === allOf || list.length === 1))
          for (const part of list) visit(asSchema(part));
      path.delete(schema);
    };
    for (const schema of schemas) visit(schema);
    return { parts, annotations };
  }

  #build(parts: readonly JsonSchema[], isRoot: boolean): Node {
    if (parts.length === 0) return this.#anything();
    if (parts.some(({ not }) => not === true || (isRecord(not) && !constrains(not)))) return NEVER;
    const values = allowedValues(parts);
    const branching = values === undefined ? branchingOf(parts) : undefined;
    let node: Node;
    if (values !== undefined) {
      const types = allowedTypes(parts);
      const fitting = values.filter((value) => types === undefined || isOfTypes(value, types));
      const isConstant = parts.some((part) => 'const' in part);
      node = this.#union(constantNodes(fitting), isConstant ? [{ kind: 'constant' }] : []);
    } else if (branching !== undefined) node = this.#distributed(parts, branching);
    else node = this.#typed(parts, isRoot);
    const annotated = annotate(node, parts, remarksOnConditions(parts, branching?.keyword));
    return parts.length > 1 ? { ...annotated, edits: [{ kind: 'merged' }, ...annotated.edits] } : annotated;
  }

  #typed(parts: readonly JsonSchema[], isRoot: boolean): Node {
    const stated = allowedTypes(parts);
    let types = stated;
    if (types === undefined) {
      const keywords = parts.flatMap((part) => Object.keys(part));
      types = [...new Set(keywords.flatMap((keyword) => KEYWORDS.get(keyword)?.of ?? []))];
      if (types.length === 0) return nodeOf({}, { branches: [this.#read([])] });
    }
    const nodes = types.map((type): Node => {
      switch (type) {
        case 'null':
        case 'boolean':
          return nodeOf({ type });
        case 'number':
        case 'integer':
        case 'string': {
          const { keywords, remarks } = keywordsFor(parts, type === 'string' ? 'string' : 'number');
          return withRemarks(nodeOf({ type, ...keywords }), remarks);
        }
        case 'array':
          return this.#list(parts);
        default:
          return type === 'object' ? this.#object(parts, isRoot) : NEVER;
      }
    });
    const node = nodes.length > 1 ? this.#union(nodes) : (nodes[0] ?? NEVER);
    return stated === undefined ? { ...node, edits: [...node.edits, { kind: 'type' }] } : node;
  }

  /** Any JSON value, with objects as arrays of pairs. */
  #anything(): Node {
    const any = this.#read([]);
    const description = 'The properties of an object with any keys; each key once.';
    const items = pairNode(nodeOf({ type: 'string' }), any);
    Object.assign(this.#entries, { description, standsFor: 'record', items });
    const entries = { name: 'entries', node: this.#entries, isRequired: true, isRest: true };
    const scalars = ['string', 'number', 'boolean', 'null'].map((type) => nodeOf({ type }));
    const list = nodeOf({ type: 'array' }, { name: 'any_list', items: any });
    const object = nodeOf({ type: 'object' }, { name: 'any_object', fields: [entries] });
    const branches = [...scalars, list, object];
    const text = 'Any JSON value; an object is the list of its entries.';
    return nodeOf({}, { name: 'any_value', description: text, branches, isBuiltIn: true });
  }

  /** The node for a value that matches any of several nodes. */
  #union(nodes: readonly Node[], edits: readonly Edit[] = []): Node {
    const branches = new Map<unknown, Node>();
    for (const node of nodes.flatMap(branchesOf)) {
      const place = target(node);
      const isScalar = SCALARS.includes(String(place.keywords.type));
      const key = isScalar ? canonicalJson([node.description, place.keywords]) : place;
      if (!isNever(node) && !branches.has(key)) branches.set(key, node);
    }
    if (branches.size === 0) return NEVER;
    const within = nodes.flatMap((node) => (node.branches ? node.edits : []));
    const rewritten = within.filter(({ kind }) => kind !== 'said');
    return nodeOf({}, { edits: [...edits, ...rewritten], branches: [...branches.values()] });
  }

  /** Applies the keywords beside a union to each of its branches. */
  #distributed(parts: readonly JsonSchema[], { holder, keyword, branches }: Branching): Node {
    const beside: JsonSchema[] = [];
    for (const part of parts) {
      // The constraints without the union: always the same object, so that it has the same node.
      const union = part === holder ? keyword : '';
      const bared = cached(this.#bared, part, () => new Map<string, JsonSchema>());
      const bare = cached(bared, union, () =>
        filterFields(part, (name, value) => name !== union && constrains({ [name]: value })),
      );
      if (Object.keys(bare).length > 0) beside.push(bare);
    }
    const isOnlyType = beside.length === 1 && Object.keys(beside[0] ?? {}).join() === 'type';
    const types = isOnlyType ? (allowedTypes(beside) ?? []) : [];
    const nodes = branches.map((branch) => {
      // A branch that has such a type itself needs no other.
      const own = isOnlyType ? allowedTypes(this.#collect([branch]).parts) : undefined;
      const isImplied = own?.every((type) => types.includes(type));
      return this.#read(isImplied ? [branch] : [branch, ...beside]);
    });
    const edits: readonly Edit[] = keyword === 'oneOf' ? [{ kind: 'union' }] : [];
    return this.#union(nodes, beside.length > 0 ? [{ kind: 'merged' }, ...edits] : edits);
  }

  /** Merges nested unions: a branch may have become a union after it was added. */
  #flattenUnions(node: Node, seen: Set<Node>): void {
    if (seen.has(node)) return;
    seen.add(node);
    if ((node.branches?.length ?? 0) > 1) {
      const expanded = new Set([node]);
      const leaves = (branch: Node): readonly Node[] => {
        const union = target(branch);
        if (union.branches === undefined) return [branch];
        if (expanded.has(union)) return [];
        expanded.add(union);
        return branchesOf(branch).flatMap(leaves);
      };
      const { branches, keywords } = this.#union(node.branches?.flatMap(leaves) ?? []);
      Object.assign(node, { branches, keywords });
    }
    if (isNever(node) && seen.size > 1) this.faults.add('a part of it fits nothing');
    for (const part of childrenOf(node)) this.#flattenUnions(part, seen);
  }

  /** An object with named properties, with arbitrary keys, or with both. */
  #object(parts: readonly JsonSchema[], isRoot: boolean): Node {
    const properties = propertySchemas(parts);
    const fields: Field[] = [];
    for (const [name, schemas] of properties) {
      const isRequired = parts.some(({ required }) => Array.isArray(required) && required.includes(name));
      const node = this.#read(schemas);
      if (!isNever(node)) fields.push({ name, node, isRequired });
      else if (isRequired) return NEVER;
    }
    const object = nodeOf({ type: 'object' }, { fields });
    const others = this.#othersOf(parts, properties.size > 0, isRoot);
    if (others !== 'record') {
      const edits = others === 'refused' ? [] : [{ kind: others }];
      return withRemarks({ ...object, edits }, keywordsFor(parts, 'object').remarks);
    }
    // The property counts of an object without fields become the counts of its pairs.
    const uncounted = parts.map(
      ({ minProperties: _, maxProperties: __, propertyNames: ___, ...part }) => part,
    );
    const hasFields = fields.length > 0;
    const record = this.#record(hasFields ? uncounted : parts);
    const { remarks } = keywordsFor(hasFields ? parts : uncounted, 'object');
    if (!hasFields && !isRoot) return withRemarks(record, remarks);
    let name = hasFields ? 'other_properties' : 'entries';
    while (properties.has(name)) name += '_';
    const description = hasFields ? 'Properties beside these.' : 'The properties.';
    const node = nodeOf({}, { description, branches: [record] });
    const rest = { name, node, isRequired: true, isRest: true };
    return withRemarks({ ...object, edits: [{ kind: 'rest' }], fields: [...fields, rest] }, remarks);
  }

  /** How properties without a field are handled: a schema may refuse them itself; dropping others is an edit. */
  #othersOf(
    parts: readonly JsonSchema[],
    hasNames: boolean,
    isRoot: boolean,
  ): 'record' | 'refused' | 'narrowed' | 'closed' {
    const isClosed = parts.some(
      ({ additionalProperties, patternProperties, unevaluatedProperties }) =>
        unevaluatedProperties === false ||
        (additionalProperties === false && Object.keys(Object(patternProperties)).length === 0),
    );
    if (isClosed) return 'refused';
    const schemas = parts.flatMap(schemasOfOthers);
    if (schemas.length > 0) {
      const areDescribed = schemas.some((schema) => Object.keys(schema).length > 0);
      return this.#takesOthers || !hasNames || areDescribed ? 'record' : 'narrowed';
    }
    // An object without a description may contain anything; a root without a description takes no arguments.
    const isUnknown = parts.every(({ properties }) => properties === undefined);
    return !hasNames && !isRoot && isUnknown ? 'record' : 'closed';
  }

  /** An object with arbitrary keys. */
  #record(parts: readonly JsonSchema[]): Node {
    const stated = parts.map(schemasOfOthers).filter((schemas) => schemas.length > 0);
    const areSingle = stated.every((schemas) => schemas.length === 1);
    const values = areSingle
      ? this.#read(stated.flat())
      : this.#union(stated.flat().map((schema) => this.#read([schema])));
    const counts = parts.map(({ minProperties: minItems, maxProperties: maxItems }) => ({
      minItems,
      maxItems,
    }));
    const { keywords } = keywordsFor(counts, 'array');
    // The node of keys, as far as a strict schema can express it.
    const names: JsonSchema[] = [];
    const patterns: string[] = [];
    const remarks: Remark[] = [];
    for (const { propertyNames, patternProperties, additionalProperties } of parts) {
      if (propertyNames !== undefined) names.push(asSchema(propertyNames));
      if (additionalProperties === false) patterns.push(...Object.keys(Object(patternProperties)));
      else remarks.push(...remarkOn('patternProperties', patternProperties));
    }
    const pattern = patterns.length > 1 ? patterns.map((each) => `(?:${each})`).join('|') : patterns[0];
    const text = pattern === undefined ? { type: 'string' } : { type: 'string', pattern };
    const read = target(this.#read([text, ...names]));
    const key = read.keywords.type === 'string' ? read : nodeOf({ type: 'string' });
    const isAny = values === this.#read([]) && Object.keys({ ...keywords, ...key.keywords }).length < 2;
    const record =
      isAny && key.description === ''
        ? nodeOf({}, { edits: [{ kind: 'pairs' }, { kind: 'anything' }], branches: [this.#entries] })
        : nodeOf(
            { type: 'array', ...keywords },
            { edits: [{ kind: 'pairs' }], standsFor: 'record', items: pairNode(key, values) },
          );
    return withRemarks(record, remarks);
  }

  /** An array with equal items, or an object with the positions of a tuple. */
  #list(parts: readonly JsonSchema[]): Node {
    const { keywords, remarks } = keywordsFor(parts, 'array');
    const least = Number(keywords.minItems ?? 0);
    const most = Number(keywords.maxItems ?? Number.POSITIVE_INFINITY);
    if (least > most) return NEVER;
    const places = Math.min(most, Math.max(0, ...parts.map((part) => placesOf(part).length)));
    if (places === 0) {
      const items = this.#read(parts.flatMap(schemasOfItems));
      if (!isNever(items)) return withRemarks(nodeOf({ type: 'array', ...keywords }, { items }), remarks);
      if (least > 0) return NEVER;
      const empty = nodeOf({ type: 'array', maxItems: 0 }, { items: nodeOf({ type: 'null' }) });
      return withRemarks(empty, remarks);
    }
    const fields: Field[] = [];
    for (let index = 0; index < places; index++) {
      const node = this.#read(parts.flatMap((part) => placesOf(part)[index] ?? schemasOfItems(part)));
      // No value is allowed here, so no item can follow.
      if (isNever(node)) break;
      fields.push({ name: placeName(index), node, isRequired: index < least });
    }
    const isCut = fields.length < places;
    const given = isCut || most <= fields.length ? [] : parts.flatMap(schemasOfItems);
    const items = given.length > 0 ? this.#read(given) : NEVER;
    const missing = least - fields.length;
    const tuple = nodeOf({ type: 'object' }, { edits: [{ kind: 'tuple' }], standsFor: 'tuple', fields });
    if (isNever(items)) {
      if (missing > 0 && (isCut || given.length > 0)) return NEVER;
      return withRemarks(tuple, [...(missing > 0 ? remarkOn('minItems', least) : []), ...remarks]);
    }
    const minItems = missing > 0 ? { minItems: missing } : {};
    const maxItems = Number.isFinite(most) ? { maxItems: most - fields.length } : {};
    const description = 'The items after these.';
    const list = nodeOf({ type: 'array', ...minItems, ...maxItems }, { description, items });
    const rest = { name: 'more_items', node: list, isRequired: true, isRest: true };
    return withRemarks({ ...tuple, fields: [...fields, rest] }, remarks);
  }
}

/** Whether a schema constrains anything by itself. */
function constrains(schema: JsonSchema): boolean {
  return Object.entries(schema).some(([keyword, value]) => {
    const isUnion = keyword === 'anyOf' || keyword === 'oneOf';
    const isFollowed = SILENT.has(keyword) || (isUnion && Array.isArray(value) && value.length === 1);
    return KEYWORDS.has(keyword) && !isFollowed;
  });
}

/** The branches of a union, each with the union's annotations; any other node is its own only branch. */
function branchesOf(node: Node): readonly Node[] {
  const { branches, description, edits, isBuiltIn } = node;
  if (branches === undefined) return [node];
  const said = edits.filter(({ kind }) => kind === 'said');
  const own = branches.flatMap(branchesOf);
  if (isBuiltIn || (description === '' && said.length === 0)) return own;
  return own.map((branch) => nodeOf({}, { description, edits: said, branches: [branch] }));
}

function branchingOf(parts: readonly JsonSchema[]): Branching | undefined {
  for (const holder of parts)
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const list = holder[keyword];
      if (!Array.isArray(list) || list.length === 1) continue;
      const branches = list.map(asSchema);
      if (branches.some((branch) => Object.keys(branch).some((key) => FORMING.has(key))))
        return { holder, keyword, branches };
    }
  return undefined;
}

/** Remarks for keywords about values of any type. */
function remarksOnConditions(parts: readonly JsonSchema[], union?: string): readonly Remark[] {
  const remarks: Remark[] = [];
  for (const part of parts) {
    const { if: condition, then, else: otherwise } = part;
    if (condition !== undefined && (then !== undefined || otherwise !== undefined)) {
      const text = `JSON Schema: ${shown({ if: condition, then, else: otherwise })}.`;
      remarks.push({ keyword: 'if', text });
    }
    for (const keyword of ['not', 'anyOf', 'oneOf']) {
      const value = part[keyword];
      const isFollowed = keyword === union || (Array.isArray(value) && value.length === 1);
      if (!isFollowed) remarks.push(...remarkOn(keyword, value));
    }
  }
  return remarks;
}

/** Adds the descriptions of schemas, or else their titles, and their defaults and the like. */
function annotate(node: Node, schemas: readonly JsonSchema[], remarks: readonly Remark[] = []): Node {
  const texts: string[] = [];
  for (const { description, title } of schemas) {
    const text = typeof description === 'string' && description !== '' ? description : title;
    if (typeof text === 'string') texts.push(text);
  }
  const stated = (keyword: string): unknown =>
    schemas.find((schema) => schema[keyword] !== undefined)?.[keyword];
  const here = [...ANNOTATIONS].flatMap((keyword) => remarkOn(keyword, stated(keyword)));
  const said = withRemarks(nodeOf({}, { description: joined(...texts) }), [...here, ...remarks]);
  const fallback = stated('default');
  return {
    ...node,
    defaultsToNull: fallback === undefined ? node.defaultsToNull : fallback === null,
    description: joined(said.description, node.description),
    edits: [...said.edits, ...node.edits],
  };
}

const SCALARS: readonly string[] = ['null', 'boolean', 'number', 'integer', 'string'];

function isOfTypes(value: unknown, types: readonly string[]): boolean {
  return types.includes(jsonType(value)) || (types.includes('integer') && Number.isInteger(value));
}

/** The types that all parts allow; `undefined` if no part states a type. */
function allowedTypes(parts: readonly JsonSchema[]): readonly string[] | undefined {
  let common: readonly string[] | undefined;
  for (const { type, nullable } of parts) {
    if (type === undefined) continue;
    const list = [type, nullable === true ? 'null' : []].flat(2);
    common = common?.flatMap((each) => {
      if (list.includes(each)) return [each];
      const isNumeric = (each === 'number' || each === 'integer') && isOfTypes(1, list);
      return isNumeric ? ['integer'] : [];
    });
    common ??= list;
  }
  const types = common && [...new Set(common)];
  return types?.includes('number') ? types.filter((type) => type !== 'integer') : types;
}

/** The values that every `enum` and `const` allows; `undefined` if there is none. */
function allowedValues(parts: readonly JsonSchema[]): readonly unknown[] | undefined {
  const lists: (readonly unknown[])[] = [];
  for (const part of parts) {
    if (Array.isArray(part.enum)) lists.push(part.enum);
    if (part.const !== undefined) lists.push([part.const]);
  }
  const [first, ...others] = lists.map((list) => new Map(list.map((value) => [canonicalJson(value), value])));
  if (first === undefined) return undefined;
  return [...first].filter(([key]) => others.every((other) => other.has(key))).map(([, value]) => value);
}

/** The nodes of constants: one for all scalars of a type, one for each object or array. */
function constantNodes(values: readonly unknown[]): readonly Node[] {
  const byType = Map.groupBy(values, (value) => (value === null ? 'null' : typeof value));
  const compounds = (byType.get('object') ?? []).map((value): Node => {
    const isTuple = Array.isArray(value);
    const fields = Object.entries(value as object).map(([key, part]: readonly [string, unknown]) => ({
      name: isTuple ? placeName(Number(key)) : key,
      node: constantNodes([part])[0] ?? NEVER,
      isRequired: true,
    }));
    const object = nodeOf({ type: 'object' }, { fields });
    return isTuple ? { ...object, standsFor: 'tuple', edits: [{ kind: 'tuple' }] } : object;
  });
  byType.delete('object');
  const scalars = [...byType].map(([type, list]) => {
    const isWhole = type === 'null' || (type === 'boolean' && list.length > 1);
    return nodeOf(isWhole ? { type } : { type, enum: list });
  });
  return [...scalars, ...compounds];
}

/** The schemas that each named property must match. */
function propertySchemas(parts: readonly JsonSchema[]): ReadonlyMap<string, readonly JsonSchema[]> {
  const names = new Set<unknown>();
  for (const { properties, required } of parts) {
    for (const name of Object.keys(properties ?? {})) names.add(name);
    for (const name of Array.isArray(required) ? required : []) names.add(name);
  }
  const found = new Map<string, readonly JsonSchema[]>();
  for (const name of names) {
    if (typeof name !== 'string') continue;
    const schemas: JsonSchema[] = [];
    for (const { properties = {}, patternProperties, additionalProperties } of parts) {
      const before = schemas.length;
      if (Object.hasOwn(properties, name)) schemas.push(asSchema(properties[name]));
      for (const [pattern, schema] of Object.entries(Object(patternProperties)))
        if (regularExpression(pattern)?.test(name)) schemas.push(asSchema(schema));
      if (schemas.length === before && additionalProperties !== undefined)
        schemas.push(asSchema(additionalProperties));
    }
    found.set(name, schemas);
  }
  // Properties that only conditions mention need their own field, unless other properties are accepted or refused.
  const statesOthers = (part: JsonSchema): boolean =>
    part.additionalProperties === false || schemasOfOthers(part).length > 0;
  if (parts.some(statesOthers)) return found;
  const mentioned = new Map<string, readonly JsonSchema[]>();
  for (const { then, else: otherwise, dependentSchemas, dependencies } of parts) {
    const dependents = [dependentSchemas, dependencies].flatMap((each) => Object.values(Object(each)));
    // Conditions may differ, so that no schema applies to all values.
    for (const schema of [then, otherwise, ...dependents].filter(isRecord))
      for (const [name, property] of Object.entries(Object(schema.properties)))
        mentioned.set(name, mentioned.has(name) ? [] : [asSchema(property)]);
  }
  for (const [name, schemas] of mentioned) if (!found.has(name)) found.set(name, schemas);
  return found;
}

/** A property of an object with arbitrary keys. */
function pairNode(key: Node, value: Node): Node {
  const isRequired = true;
  return nodeOf(
    { type: 'object' },
    {
      fields: [
        { name: 'key', node: key, isRequired },
        { name: VALUE, node: value, isRequired },
      ],
    },
  );
}

/** The schemas for properties without a name; empty if there are no such properties. */
function schemasOfOthers(part: JsonSchema): readonly JsonSchema[] {
  const byPattern = Object.values(Object(part.patternProperties)).map(asSchema);
  const other = part.additionalProperties ?? part.unevaluatedProperties;
  if (other === undefined) return byPattern.length > 0 ? [...byPattern, {}] : [];
  return other === false ? byPattern : [...byPattern, asSchema(other)];
}

/** The schemas of the first positions: `prefixItems`, or an array in `items` as in draft 7. */
function placesOf({ prefixItems, items }: JsonSchema): readonly JsonSchema[] {
  const list = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
  return list.map(asSchema);
}

/** The schema of the items after the tuple, if there is one. */
function schemasOfItems({ items, additionalItems, unevaluatedItems }: JsonSchema): readonly JsonSchema[] {
  const given = (Array.isArray(items) ? additionalItems : items) ?? unevaluatedItems;
  return given === undefined ? [] : [asSchema(given)];
}
