import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import { canonicalJson, filterFields, isRecord, jsonType } from '../../../core/kernel/json.js';
import { findReference } from '../find-reference.js';
import { KEYWORDS, type Keyword, mergeKeywords, regularExpression } from '../keywords.js';
import {
  asSchema,
  childrenOf,
  type Edit,
  type EditKind,
  type Field,
  isNever,
  joined,
  NEVER,
  type Node,
  nodeOf,
  placeName,
  target,
  VALUE,
} from './node.js';

/** A keyword that strict schemas do not support, as a sentence. */
interface Remark {
  readonly keyword: string;
  readonly text: string;
}

/** Keywords that constrain nothing. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['default', 'examples', 'deprecated']);

/** Adds remarks to the description of a node. */
function withRemarks(node: Node, remarks: readonly Remark[]): Node {
  const edits = remarks.flatMap(({ keyword }) =>
    ANNOTATIONS.has(keyword) ? [] : [{ kind: 'said', keyword } as const],
  );
  const description = joined(node.description, ...remarks.map(({ text }) => text));
  return { ...node, description, edits: [...node.edits, ...edits] };
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
  group: Keyword['of'],
): { readonly keywords: JsonSchema; readonly remarks: readonly Remark[] } {
  const entries = parts
    .flatMap((part) => Object.entries(part))
    .filter(([keyword]) => KEYWORDS.get(keyword)?.of === group && !STRUCTURAL.has(keyword));
  const { allOf = [], ...keywords } = entries
    .filter((entry) => isExpressible(...entry))
    .map(([keyword, value]): JsonSchema => ({ [keyword]: value }))
    .reduce(mergeKeywords, {});
  const others = entries.filter((entry) => !isExpressible(...entry));
  const unmerged = (allOf as readonly JsonSchema[]).flatMap((part) => Object.entries(part));
  const remarks = [...others, ...unmerged].flatMap(([keyword, value]) => remarkOn(keyword, value));
  return { keywords, remarks };
}

/** Remarks for keywords about values of any type. */
function remarksOnConditions(parts: readonly JsonSchema[], union?: string): readonly Remark[] {
  return parts.flatMap((part) => {
    const { if: condition, then, else: otherwise } = part;
    const isIdle = condition === undefined || (then === undefined && otherwise === undefined);
    const conditional = { if: condition, then, else: otherwise };
    const conditions = isIdle ? [] : [{ keyword: 'if', text: `JSON Schema: ${shown(conditional)}.` }];
    const isSingle = (keyword: string): boolean => Array.isArray(part[keyword]) && part[keyword].length === 1;
    const others = ['not', 'anyOf', 'oneOf'].filter((keyword) => keyword !== union && !isSingle(keyword));
    return [...conditions, ...others.flatMap((keyword) => remarkOn(keyword, part[keyword]))];
  });
}

const MOST_CHARACTERS = 300;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : shown(value);
}

function listed(values: unknown): string {
  return Array.isArray(values) ? values.map(shown).join(', ') : shown(values);
}

function neededWith(value: unknown): string {
  const rows = Object.entries(Object(value)).filter(([, names]) => Array.isArray(names));
  return rows.map(([name, names]) => `With ${shown(name)} also ${listed(names)}.`).join(' ');
}

/** The sentence for a keyword; other keywords are shown as JSON. */
const SENTENCES: Readonly<Record<string, (value: unknown) => string>> = {
  minLength: (value) => `At least ${plain(value)} characters.`,
  maxLength: (value) => `At most ${plain(value)} characters.`,
  pattern: (value) => `Matches the pattern ${plain(value)}.`,
  format: (value) => `Format: ${plain(value)}.`,
  contentEncoding: (value) => `Encoded as ${plain(value)}.`,
  contentMediaType: (value) => `Media type: ${plain(value)}.`,
  minItems: (value) => `At least ${plain(value)} items.`,
  maxItems: (value) => `At most ${plain(value)} items.`,
  uniqueItems: (value) => (value === true ? 'No two items are equal.' : ''),
  contains: (value) => `Contains an item that fits ${shown(value)}.`,
  minContains: (value) => `At least ${plain(value)} such items.`,
  maxContains: (value) => `At most ${plain(value)} such items.`,
  minProperties: (value) => `At least ${plain(value)} properties.`,
  maxProperties: (value) => `At most ${plain(value)} properties.`,
  multipleOf: (value) => `A multiple of ${plain(value)}.`,
  propertyNames: (value) => `Keys fit ${shown(value)}.`,
  dependentRequired: neededWith,
  not: (value) => `Must not fit ${shown(value)}.`,
  anyOf: (value) => `Fits at least one of ${shown(value)}.`,
  oneOf: (value) => `Fits exactly one of ${shown(value)}.`,
  default: (value) => `Default: ${shown(value)}.`,
  examples: (value) => `For example ${listed(value)}.`,
  deprecated: (value) => (value === true ? 'Deprecated.' : ''),
};

/** The remark for a keyword; empty for a value without effect. */
function remarkOn(keyword: string, value: unknown): readonly Remark[] {
  if (value === undefined) return [];
  const text = SENTENCES[keyword]?.(value) ?? `JSON Schema: ${shown({ [keyword]: value })}.`;
  return text === '' ? [] : [{ keyword, text }];
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
  readonly takesOthers: boolean;
  /** An object with any keys and any values. */
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

  /** The node for schemas that all apply. */
  read(schemas: readonly JsonSchema[]): Node {
    const { parts, annotations } = this.#collect(schemas);
    const node = this.#nodeFor(parts);
    const annotated = annotate(nodeOf({}, { branches: [node] }), annotations);
    return annotated.description === '' ? node : annotated;
  }

  /** The node for a value that matches any of several nodes. */
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
      for (const part of this.#followed(schema)) visit(part);
      path.delete(schema);
    };
    for (const schema of schemas) visit(schema);
    return { parts, annotations };
  }

  /** The schemas that a schema includes by `$ref`, `allOf` or a union with one branch. */
  #followed(schema: JsonSchema): readonly JsonSchema[] {
    for (const keyword of ['$dynamicRef', '$recursiveRef'])
      if (keyword in schema) this.faults.add(`${keyword} depends on where the schema is used`);
    const { $ref, allOf } = schema;
    const found = [allOf, schema.anyOf, schema.oneOf].flatMap((list) =>
      Array.isArray(list) && (list === allOf || list.length === 1) ? list.map(asSchema) : [],
    );
    if (typeof $ref !== 'string') return found;
    const referred = findReference($ref, this.#root, schema);
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
      return type === 'object' ? objectNode(parts, this, isRoot) : NEVER;
    });
    const [only = NEVER, ...others] = nodes;
    const node = others.length === 0 ? only : this.union(nodes);
    return stated === undefined ? { ...node, edits: [...node.edits, { kind: 'type' }] } : node;
  }

  /** Any JSON value, with objects as arrays of pairs. */
  #anything(): Node {
    const any = this.read([]);
    const description = 'The properties of an object with any keys; each key once.';
    const items = pairNode(nodeOf({ type: 'string' }), any);
    Object.assign(this.entries, { description, standsFor: 'record', items });
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

  /** Applies the keywords beside a union to each of its branches. */
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

  /** The constraints of a schema without a union: always the same object, so that it has the same node. */
  #bare(schema: JsonSchema, union = ''): JsonSchema {
    const bared = cached(this.#bared, schema, () => new Map<string, JsonSchema>());
    return cached(bared, union, () =>
      filterFields(schema, (keyword, value) => keyword !== union && constrains({ [keyword]: value })),
    );
  }

  /** Whether only a type is beside a union, and the branch has that type itself. */
  #isImplied(beside: readonly JsonSchema[], branch: JsonSchema): boolean {
    if (beside.length !== 1 || Object.keys(beside[0] ?? {}).join() !== 'type') return false;
    const types = allowedTypes(beside) ?? [];
    return allowedTypes(this.#collect([branch]).parts)?.every((type) => types.includes(type)) ?? false;
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
      const { branches, keywords } = this.union(node.branches?.flatMap(leaves) ?? []);
      Object.assign(node, { branches, keywords });
    }
    if (isNever(node) && seen.size > 1) this.faults.add('a part of it fits nothing');
    for (const part of childrenOf(node)) this.#flattenUnions(part, seen);
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

/** Adds the descriptions of schemas, or else their titles, and their defaults and the like. */
function annotate(node: Node, schemas: readonly JsonSchema[], remarks: readonly Remark[] = []): Node {
  const texts = schemas.map(({ description, title }) =>
    typeof description === 'string' && description !== '' ? description : title,
  );
  const description = joined(...texts.filter((text): text is string => typeof text === 'string'));
  const stated = (keyword: string): unknown =>
    schemas.find((schema) => schema[keyword] !== undefined)?.[keyword];
  const here = [...ANNOTATIONS].flatMap((keyword) => remarkOn(keyword, stated(keyword)));
  const said = withRemarks(nodeOf({}, { description }), [...here, ...remarks]);
  const fallback = stated('default');
  return {
    ...node,
    defaultsToNull: fallback === undefined ? node.defaultsToNull : fallback === null,
    description: joined(said.description, node.description),
    edits: [...said.edits, ...node.edits],
  };
}

const SCALARS: readonly string[] = ['null', 'boolean', 'number', 'integer', 'string'];

function scalarNode(type: string, parts: readonly JsonSchema[]): Node {
  if (type === 'null' || type === 'boolean') return nodeOf({ type });
  const { keywords, remarks } = keywordsFor(parts, type === 'string' ? 'string' : 'number');
  return withRemarks(nodeOf({ type, ...keywords }), remarks);
}

function isOfTypes(value: unknown, types: readonly string[]): boolean {
  if (types.includes('integer') && Number.isInteger(value)) return true;
  return types.includes(jsonType(value));
}

/** The types that all parts allow; `undefined` if no part states a type. */
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

/** The types that the keywords apply to. */
function impliedTypes(parts: readonly JsonSchema[]): readonly string[] {
  const types = parts.flatMap((part) =>
    Object.keys(part).flatMap((keyword) => KEYWORDS.get(keyword)?.of ?? []),
  );
  return [...new Set(types)];
}

/** The values that every `enum` and `const` allows; `undefined` if there is none. */
function allowedValues(parts: readonly JsonSchema[]): readonly unknown[] | undefined {
  const lists = parts.flatMap((part) => [
    ...(Array.isArray(part.enum) ? [part.enum] : []),
    ...(part.const === undefined ? [] : [[part.const]]),
  ]);
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

/** An object with named properties, with arbitrary keys, or with both. */
function objectNode(parts: readonly JsonSchema[], reader: SchemaReader, isRoot: boolean): Node {
  const properties = propertySchemas(parts);
  const fields: Field[] = [];
  for (const [name, schemas] of properties) {
    const isRequired = parts.some(({ required }) => Array.isArray(required) && required.includes(name));
    const node = reader.read(schemas);
    if (!isNever(node)) fields.push({ name, node, isRequired });
    else if (isRequired) return NEVER;
  }
  const object = nodeOf({ type: 'object' }, { fields });
  const others = othersOf(parts, { hasNames: properties.size > 0, isRoot, takesOthers: reader.takesOthers });
  if (others !== 'record') {
    const edits = others === undefined ? [] : [{ kind: others }];
    return withRemarks({ ...object, edits }, keywordsFor(parts, 'object').remarks);
  }
  // The property counts of an object without fields become the counts of its pairs.
  const uncounted = parts.map(({ minProperties: _, maxProperties: __, propertyNames: ___, ...part }) => part);
  const hasFields = fields.length > 0;
  const record = recordNode(hasFields ? uncounted : parts, reader);
  const { remarks } = keywordsFor(hasFields ? parts : uncounted, 'object');
  if (!hasFields && !isRoot) return withRemarks(record, remarks);
  let name = hasFields ? 'other_properties' : 'entries';
  while (properties.has(name)) name += '_';
  const description = hasFields ? 'Properties beside these.' : 'The properties.';
  const node = nodeOf({}, { description, branches: [record] });
  const rest = { name, node, isRequired: true, isRest: true };
  return withRemarks({ ...object, edits: [{ kind: 'rest' }], fields: [...fields, rest] }, remarks);
}

/** The schemas that each named property must match. */
function propertySchemas(parts: readonly JsonSchema[]): ReadonlyMap<string, readonly JsonSchema[]> {
  const found = new Map<string, readonly JsonSchema[]>();
  for (const { properties, required } of parts)
    for (const name of [...Object.keys(properties ?? {}), ...(Array.isArray(required) ? required : [])])
      if (typeof name === 'string')
        found.set(
          name,
          parts.flatMap((part) => schemasInPart(name, part)),
        );
  // Properties that only conditions mention need their own field, unless other properties are accepted or refused.
  const statesOthers = (part: JsonSchema): boolean =>
    part.additionalProperties === false || schemasOfOthers(part).length > 0;
  if (parts.some(statesOthers)) return found;
  const conditional = parts.flatMap(({ then, else: otherwise, dependentSchemas, dependencies }) =>
    [then, otherwise, Object.values(Object(dependentSchemas)), Object.values(Object(dependencies))]
      .flat()
      .filter(isRecord),
  );
  const mentions = conditional.flatMap(({ properties }) => Object.entries(Object(properties)));
  for (const [name] of mentions) {
    const schemas = mentions.filter(([other]) => other === name).map(([, schema]) => asSchema(schema));
    if (!found.has(name)) found.set(name, schemas.length === 1 ? schemas : []);
  }
  return found;
}

function schemasInPart(name: string, part: JsonSchema): readonly JsonSchema[] {
  const { properties = {}, patternProperties, additionalProperties } = part;
  const found = Object.hasOwn(properties, name) ? [asSchema(properties[name])] : [];
  for (const [pattern, schema] of Object.entries(Object(patternProperties)))
    if (regularExpression(pattern)?.test(name)) found.push(asSchema(schema));
  return found.length > 0 || additionalProperties === undefined ? found : [asSchema(additionalProperties)];
}

/**
 * How properties without a field are handled: as a record, or dropped, which is an edit unless the schema states it.
 */
function othersOf(
  parts: readonly JsonSchema[],
  given: { readonly hasNames: boolean; readonly isRoot: boolean; readonly takesOthers: boolean },
): 'record' | EditKind | undefined {
  const isClosed = parts.some(
    ({ additionalProperties, patternProperties, unevaluatedProperties }) =>
      unevaluatedProperties === false ||
      (additionalProperties === false && Object.keys(Object(patternProperties)).length === 0),
  );
  if (isClosed) return undefined;
  const schemas = parts.flatMap(schemasOfOthers);
  if (schemas.length > 0) {
    const areDescribed = schemas.some((schema) => Object.keys(schema).length > 0);
    return given.takesOthers || !given.hasNames || areDescribed ? 'record' : 'narrowed';
  }
  // An object without a description may contain anything; a root without a description takes no arguments.
  const isUnknown = parts.every(({ properties }) => properties === undefined);
  return !given.hasNames && !given.isRoot && isUnknown ? 'record' : 'closed';
}

/** An object with arbitrary keys. */
function recordNode(parts: readonly JsonSchema[], reader: SchemaReader): Node {
  const stated = parts.map(schemasOfOthers).filter((schemas) => schemas.length > 0);
  const areSingle = stated.every((schemas) => schemas.length === 1);
  const values = areSingle
    ? reader.read(stated.flat())
    : reader.union(stated.flat().map((schema) => reader.read([schema])));
  const counts = parts.map(({ minProperties: minItems, maxProperties: maxItems }) => ({
    minItems,
    maxItems,
  }));
  const { keywords } = keywordsFor(counts, 'array');
  const key = keyNode(parts, reader);
  const open = parts.filter(({ additionalProperties }) => additionalProperties !== false);
  const remarks = open.flatMap((part) => remarkOn('patternProperties', part.patternProperties));
  const isAny = values === reader.read([]) && Object.keys({ ...keywords, ...key.keywords }).length < 2;
  if (isAny && key.description === '')
    return withRemarks(
      nodeOf({}, { edits: [{ kind: 'pairs' }, { kind: 'anything' }], branches: [reader.entries] }),
      remarks,
    );
  const pairs = nodeOf(
    { type: 'array', ...keywords },
    { edits: [{ kind: 'pairs' }], standsFor: 'record', items: pairNode(key, values) },
  );
  return withRemarks(pairs, remarks);
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

/** The node of keys, as far as a strict schema can express it. */
function keyNode(parts: readonly JsonSchema[], reader: SchemaReader): Node {
  const names = parts.flatMap(({ propertyNames }) =>
    propertyNames === undefined ? [] : [asSchema(propertyNames)],
  );
  const closed = parts.filter(({ additionalProperties }) => additionalProperties === false);
  const patterns = closed.flatMap(({ patternProperties }) => Object.keys(Object(patternProperties)));
  const pattern = patterns.length > 1 ? patterns.map((each) => `(?:${each})`).join('|') : patterns[0];
  const key = target(
    reader.read([pattern === undefined ? { type: 'string' } : { type: 'string', pattern }, ...names]),
  );
  return key.keywords.type === 'string' ? key : nodeOf({ type: 'string' });
}

/** An array with equal items, or with different positions. */
function listNode(parts: readonly JsonSchema[], reader: SchemaReader): Node {
  const { keywords, remarks } = keywordsFor(parts, 'array');
  const least = Number(keywords.minItems ?? 0);
  const most = Number(keywords.maxItems ?? Number.POSITIVE_INFINITY);
  if (least > most) return NEVER;
  const places = Math.min(most, Math.max(0, ...parts.map((part) => placesOf(part).length)));
  if (places > 0) return withRemarks(tupleNode(parts, reader, { places, least, most }), remarks);
  const items = reader.read(parts.flatMap(schemasOfItems));
  if (!isNever(items)) return withRemarks(nodeOf({ type: 'array', ...keywords }, { items }), remarks);
  if (least > 0) return NEVER;
  const empty = nodeOf({ type: 'array', maxItems: 0 }, { items: nodeOf({ type: 'null' }) });
  return withRemarks(empty, remarks);
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

function tupleNode(
  parts: readonly JsonSchema[],
  reader: SchemaReader,
  { places, least, most }: Readonly<Record<'places' | 'least' | 'most', number>>,
): Node {
  const fields: Field[] = [];
  for (let index = 0; index < places; index++) {
    const node = reader.read(parts.flatMap((part) => placesOf(part)[index] ?? schemasOfItems(part)));
    // No value is allowed here, so no item can follow.
    if (isNever(node)) break;
    fields.push({ name: placeName(index), node, isRequired: index < least });
  }
  const isCut = fields.length < places;
  const given = isCut || most <= fields.length ? [] : parts.flatMap(schemasOfItems);
  const items = given.length > 0 ? reader.read(given) : NEVER;
  const missing = least - fields.length;
  const tuple = nodeOf({ type: 'object' }, { edits: [{ kind: 'tuple' }], standsFor: 'tuple', fields });
  if (isNever(items)) {
    if (missing > 0 && (isCut || given.length > 0)) return NEVER;
    return withRemarks(tuple, missing > 0 ? remarkOn('minItems', least) : []);
  }
  const minItems = missing > 0 ? { minItems: missing } : {};
  const maxItems = Number.isFinite(most) ? { maxItems: most - fields.length } : {};
  const description = 'The items after these.';
  const list = nodeOf({ type: 'array', ...minItems, ...maxItems }, { description, items });
  return {
    ...tuple,
    fields: [...fields, { name: 'more_items', node: list, isRequired: true, isRest: true }],
  };
}
