import type { JsonSchema } from '../../contract/json-schema.js';
import { canonicalJson, isRecord } from '../../kernel/json.js';
import { findReference } from '../find-reference.js';
import { KEYWORDS } from '../keywords.js';
import { keywordsFor, type Remark, remarkOn, remarksOnConditions, withRemarks } from './keyword-remarks.js';
import {
  asSchema,
  type Edit,
  isNever,
  joined,
  NEVER,
  type Node,
  type NodeReader,
  nodeOf,
  partsOf,
  placeName,
  target,
  VALUE,
} from './node.js';
import { listNode, objectNode } from './structure-nodes.js';

/** Larger schemas are refused: unions multiply the keywords beside them. */
const MOST_NODES = 20_000;

/** Keywords that constrain nothing, or that are followed. */
const SILENT: ReadonlySet<string> = new Set([
  ...['$ref', 'allOf'],
  ...['$id', '$schema', '$comment', '$anchor', '$dynamicAnchor', '$recursiveAnchor', '$defs', 'definitions'],
  ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$async'],
]);

/** The keywords that give a branch of a union a form of its own; the others are conditions. */
const FORMING: ReadonlySet<string> = new Set([
  ...['$ref', 'allOf', 'anyOf', 'oneOf', 'type', 'enum', 'const', 'properties', 'additionalProperties'],
  ...['patternProperties', 'items', 'prefixItems', 'minItems', 'maxItems', 'pattern', 'format'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);

interface Branching {
  readonly holder: JsonSchema;
  readonly keyword: 'anyOf' | 'oneOf';
  readonly branches: readonly JsonSchema[];
}

/** Reads a schema into nodes of the strict schema. */
export class SchemaReader implements NodeReader {
  /** Why the schema has no strict form. */
  readonly faults = new Set<string>();
  readonly takesOthers: boolean;
  readonly entries: Node = nodeOf({ type: 'array' }, { name: 'any_entries', isBuiltIn: true });
  readonly #root: JsonSchema;
  readonly #names = new Map<JsonSchema, string>();
  readonly #ids = new Map<JsonSchema, number>();
  readonly #nodes = new Map<string, Node>();
  readonly #bared = new WeakMap<JsonSchema, Map<string, JsonSchema>>();

  constructor(root: JsonSchema, takesOthers: boolean) {
    this.#root = root;
    this.takesOthers = takesOthers;
    for (const keyword of ['definitions', '$defs'] as const)
      for (const [name, schema] of Object.entries(Object(root[keyword])))
        this.#names.set(asSchema(schema), name);
  }

  /** The node of the whole schema. */
  readRoot(): Node {
    const root = this.read([this.#root]);
    this.#flattenUnions(root, new Set());
    return root;
  }

  read(schemas: readonly JsonSchema[]): Node {
    const { parts, annotations } = this.#collect(schemas);
    const node = this.#nodeFor(parts);
    const annotated = annotate(nodeOf({}, { branches: [node] }), annotations);
    return annotated.description === '' ? node : annotated;
  }

  union(nodes: readonly Node[], edits: readonly Edit[] = []): Node {
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

  /** References and `allOf` followed: schemas that constrain the value, and others that only annotate it. */
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
      for (const part of this.#followed(schema)) visit(part);
      path.delete(schema);
    };
    for (const schema of schemas) visit(schema);
    return { parts, annotations };
  }

  /** What a schema includes by `$ref`, `allOf` or a union of one. */
  #followed(schema: JsonSchema): readonly JsonSchema[] {
    for (const keyword of ['$dynamicRef', '$recursiveRef'])
      if (keyword in schema) this.faults.add(`${keyword} depends on where the schema is used`);
    const { $ref, allOf } = schema;
    const found = [allOf, schema.anyOf, schema.oneOf].flatMap((list) =>
      Array.isArray(list) && (list === allOf || list.length === 1) ? list.map(asSchema) : [],
    );
    if (typeof $ref !== 'string') return found;
    const referred = findReference($ref, { root: this.#root, from: schema });
    if (referred === undefined) this.faults.add(`the reference ${$ref} leads nowhere within the schema`);
    return [asSchema(referred), ...found];
  }

  #nodeFor(parts: readonly JsonSchema[]): Node {
    for (const part of parts) if (!this.#ids.has(part)) this.#ids.set(part, this.#ids.size);
    const key = parts.map((part) => this.#ids.get(part)).join();
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const isRoot = this.#nodes.size === 0;
    const [first, ...others] = parts;
    const title = typeof first?.title === 'string' ? first.title : undefined;
    const node = nodeOf(
      {},
      { name: first && others.length === 0 ? (this.#names.get(first) ?? title) : undefined },
    );
    this.#nodes.set(key, node);
    if (this.#nodes.size > MOST_NODES) this.faults.add('it has too many parts');
    // A schema with a fault is refused anyway.
    return Object.assign(node, this.faults.size > 0 ? NEVER : this.#build(parts, isRoot));
  }

  #build(parts: readonly JsonSchema[], isRoot: boolean): Node {
    if (parts.length === 0) return this.#anything();
    if (parts.some(({ not }) => not === true || (isRecord(not) && !constrains(not)))) return NEVER;
    const values = allowedValues(parts);
    const branching = values === undefined ? branchingOf(parts) : undefined;
    const node =
      values !== undefined
        ? this.#constants(parts, values)
        : branching !== undefined
          ? this.#distributed(parts, branching)
          : this.#typed(parts, isRoot);
    const annotated = annotate(node, parts, remarksOnConditions(parts, branching?.keyword));
    return parts.length > 1 ? { ...annotated, edits: [{ kind: 'merged' }, ...annotated.edits] } : annotated;
  }

  #typed(parts: readonly JsonSchema[], isRoot: boolean): Node {
    const stated = allowedTypes(parts);
    const types = stated ?? impliedTypes(parts);
    if (stated === undefined && types.length === 0) return nodeOf({}, { branches: [this.read([])] });
    const nodes = types.map((type): Node => {
      if (SCALARS.includes(type)) return scalarNode(type, parts);
      if (type === 'array') return listNode(parts, this);
      return type === 'object' ? objectNode(parts, { reader: this, isRoot }) : NEVER;
    });
    const [only = NEVER, ...others] = nodes;
    const node = others.length === 0 ? only : this.union(nodes);
    return stated === undefined ? { ...node, edits: [...node.edits, { kind: 'type' }] } : node;
  }

  /** Any JSON value, with objects as lists of pairs. */
  #anything(): Node {
    const any = this.read([]);
    const key = { name: 'key', node: nodeOf({ type: 'string' }), isRequired: true };
    const pair = nodeOf({ type: 'object' }, { fields: [key, { name: VALUE, node: any, isRequired: true }] });
    const description = 'The properties of an object with any keys; each key once.';
    Object.assign(this.entries, { description, standsFor: 'record', items: pair });
    const entries = { name: 'entries', node: this.entries, isRequired: true, isRest: true };
    const scalars = ['string', 'number', 'boolean', 'null'].map((type) => nodeOf({ type }));
    const list = nodeOf({ type: 'array' }, { name: 'any_list', items: any });
    const object = nodeOf({ type: 'object' }, { name: 'any_object', fields: [entries] });
    const branches = [...scalars, list, object];
    const text = 'Any JSON value; an object is the list of its entries.';
    return nodeOf({}, { name: 'any_value', description: text, branches, isBuiltIn: true });
  }

  #constants(parts: readonly JsonSchema[], values: readonly unknown[]): Node {
    const types = allowedTypes(parts);
    const fitting = values.filter((value) => types === undefined || isOfTypes(value, types));
    const isConstant = parts.some((part) => 'const' in part);
    return this.union(constantNodes(fitting), isConstant ? [{ kind: 'constant' }] : []);
  }

  /** The keywords beside a union hold in each of its branches. */
  #distributed(parts: readonly JsonSchema[], { holder, keyword, branches }: Branching): Node {
    const beside = parts
      .map((part) => this.#bare(part, part === holder ? keyword : undefined))
      .filter((part) => Object.keys(part).length > 0);
    const nodes = branches.map((branch) =>
      this.read(this.#isImplied(beside, branch) ? [branch] : [branch, ...beside]),
    );
    const edits: readonly Edit[] = keyword === 'oneOf' ? [{ kind: 'union' }] : [];
    return this.union(nodes, beside.length > 0 ? [{ kind: 'merged' }, ...edits] : edits);
  }

  /** The constraints of a schema but a union: always the same object, so that it keeps its node. */
  #bare(schema: JsonSchema, union = ''): JsonSchema {
    const known = this.#bared.get(schema)?.get(union);
    if (known !== undefined) return known;
    const entries = Object.entries(schema).filter(
      ([keyword]) => keyword !== union && constrains({ [keyword]: schema[keyword] }),
    );
    const bare: JsonSchema = Object.fromEntries(entries);
    this.#bared.set(schema, (this.#bared.get(schema) ?? new Map<string, JsonSchema>()).set(union, bare));
    return bare;
  }

  /** Whether only a type stands beside a union, and the branch has that type itself. */
  #isImplied(beside: readonly JsonSchema[], branch: JsonSchema): boolean {
    if (beside.length !== 1 || Object.keys(beside[0] ?? {}).join() !== 'type') return false;
    const types = allowedTypes(beside) ?? [];
    return allowedTypes(this.#collect([branch]).parts)?.every((type) => types.includes(type)) ?? false;
  }

  /** A branch that was still being read may have become a union itself. */
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
      const { branches, keywords } = this.union(node.branches?.flatMap(leaves) ?? []);
      Object.assign(node, { branches, keywords });
    }
    if (isNever(node) && seen.size > 1) this.faults.add('a part of it fits nothing');
    for (const part of partsOf(node)) this.#flattenUnions(part, seen);
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

/** The branches of a union, each with what is stated about the union; anything else is its only branch. */
function branchesOf(node: Node): readonly Node[] {
  const { branches, description, edits, isBuiltIn } = node;
  if (branches === undefined) return [node];
  const said = edits.filter(({ kind }) => kind === 'said');
  return branches.flatMap(branchesOf).map((branch) => {
    if (isBuiltIn || (description === '' && said.length === 0)) return branch;
    return nodeOf({}, { description, edits: said, branches: [branch] });
  });
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

/** A node with the descriptions of schemas, or else their titles, and their default and the like. */
function annotate(node: Node, schemas: readonly JsonSchema[], remarks: readonly Remark[] = []): Node {
  const texts = schemas.map(({ description, title }) =>
    typeof description === 'string' && description !== '' ? description : title,
  );
  const description = joined(...texts.filter((text): text is string => typeof text === 'string'));
  const stated = (keyword: string): unknown =>
    schemas.find((schema) => schema[keyword] !== undefined)?.[keyword];
  const here = ['default', 'examples', 'deprecated'].flatMap((keyword) => remarkOn(keyword, stated(keyword)));
  const said = withRemarks(nodeOf({}, { description }), [...here, ...remarks]);
  const isDefault = stated('default') === undefined ? {} : { defaultsToNull: stated('default') === null };
  return {
    ...node,
    ...isDefault,
    description: joined(said.description, node.description),
    edits: [...said.edits, ...node.edits],
  };
}

const SCALARS: readonly string[] = ['null', 'boolean', 'number', 'integer', 'string'];

function scalarNode(type: string, parts: readonly JsonSchema[]): Node {
  if (type === 'null' || type === 'boolean') return nodeOf({ type });
  const { keywords, remarks } = keywordsFor(parts, type === 'string' ? 'text' : 'number');
  return withRemarks(nodeOf({ type, ...keywords }), remarks);
}

function isOfTypes(value: unknown, types: readonly string[]): boolean {
  if (types.includes('integer') && Number.isInteger(value)) return true;
  return types.includes(value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
}

/** The types that all parts allow; nothing if no part states a type. */
function allowedTypes(parts: readonly JsonSchema[]): readonly string[] | undefined {
  const lists = parts.flatMap(({ type, nullable }) =>
    type === undefined ? [] : [[type, nullable === true ? 'null' : []].flat(2)],
  );
  const [first, ...others] = lists;
  if (first === undefined) return undefined;
  const common = others.reduce<readonly string[]>(
    (before, list) =>
      before.flatMap((type) => {
        if (list.includes(type)) return [type];
        const isNumeric = (type === 'number' || type === 'integer') && isOfTypes(1, list);
        return isNumeric ? ['integer'] : [];
      }),
    first,
  );
  const types = [...new Set(common)];
  return types.includes('number') ? types.filter((type) => type !== 'integer') : types;
}

/** The types that the keywords are about. */
function impliedTypes(parts: readonly JsonSchema[]): readonly string[] {
  const groups = parts.flatMap((part) =>
    Object.keys(part).flatMap((keyword) => KEYWORDS.get(keyword)?.of ?? []),
  );
  return [...new Set(groups)].map((group) => (group === 'text' ? 'string' : group));
}

/** The values that every `enum` and `const` lists; nothing if there is none. */
function allowedValues(parts: readonly JsonSchema[]): readonly unknown[] | undefined {
  const lists = parts.flatMap((part) => [
    ...(Array.isArray(part.enum) ? [part.enum] : []),
    ...(part.const === undefined ? [] : [[part.const]]),
  ]);
  const [first, ...others] = lists.map((list) => new Map(list.map((value) => [canonicalJson(value), value])));
  if (first === undefined) return undefined;
  return [...first].filter(([key]) => others.every((other) => other.has(key))).map(([, value]) => value);
}

/** The nodes of constants: one for all scalars of a type, one for each object or list. */
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
