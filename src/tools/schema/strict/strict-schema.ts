import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import { freeName } from '../../../core/kernel/free-name.js';
import {
  canonicalJson,
  childPath,
  copyOfJson,
  type Fields,
  isObject,
  isRecord,
  jsonType,
  setOwn,
} from '../../../core/kernel/json.js';
import { allSchemas, subschemas } from '../keywords.js';
import {
  childrenOf,
  type Edit,
  type Field,
  joined,
  type Node,
  SchemaReader,
  target,
  VALUE,
} from './schema-reader.js';

/** A difference between a schema and its strict form, with its path in the strict schema; empty for the root. */
export type StrictEdit = Edit & { readonly at: string };

/** Every node, with the nodes that use it. */
type Parents = ReadonlyMap<Node, readonly Node[]>;

/** The nodes of a schema, and those that contain themselves. */
function surveyOf(root: Node): { readonly parents: Parents; readonly recursive: ReadonlySet<Node> } {
  const parents = new Map<Node, Node[]>([[root, []]]);
  const recursive = new Set<Node>();
  const above = new Set<Node>();
  const visit = (node: Node): void => {
    above.add(node);
    for (const part of childrenOf(node)) {
      if (above.has(part)) recursive.add(part);
      const known = parents.get(part);
      known?.push(node);
      if (known !== undefined) continue;
      parents.set(part, [node]);
      visit(part);
    }
    above.delete(node);
  };
  visit(root);
  return { parents, recursive };
}

/** Adds tags to unions whose branches could be confused, if that would restore another value. */
function chooseTags(parents: Parents): void {
  const rewritten = new Set<Node>();
  for (const node of parents.keys()) {
    const { standsFor, fields = [] } = node;
    if (standsFor !== undefined || fields.some(({ isRequired, isRest }) => !isRequired || isRest))
      rewritten.add(node);
  }
  for (const node of rewritten) for (const parent of parents.get(node) ?? []) rewritten.add(parent);
  for (const union of parents.keys()) {
    const { branches = [] } = union;
    const alike = Map.groupBy(branches, (branch) => {
      const { items, fields } = target(branch);
      return items ? 'list' : fields && canonicalJson(fields.map(({ name }) => name).sort());
    });
    alike.delete(undefined);
    const areConfused = [...alike.values()].some(
      (nodes) =>
        nodes.length > 1 && nodes.some((node) => rewritten.has(node)) && distinctiveName(nodes) === undefined,
    );
    if (!areConfused) continue;
    // The tag of a branch with parts: its name, or its number.
    const tags = new Map<string, Node>();
    for (const [index, branch] of branches.entries()) {
      const { name, standsFor, fields, items } = target(branch);
      if (fields === undefined && items === undefined) continue;
      let tag = name ?? `${standsFor ?? (fields ? 'object' : 'list')}_${index + 1}`;
      while (tags.has(tag)) tag += '_';
      tags.set(tag, branch);
    }
    union.tags = new Map([...tags].map(([tag, branch]) => [branch, tag]));
  }
}

/** The field whose constants differ in all objects. */
function distinctiveName(nodes: readonly Node[]): string | undefined {
  const objects = nodes.map((node) => {
    const { fields = [], standsFor } = target(node);
    return standsFor === undefined ? fields.filter(({ isRequired }) => isRequired) : [];
  });
  return objects[0]?.find(({ name }) => {
    const lists = objects.map((fields) => {
      const field = fields.find((each) => each.name === name);
      return (field && target(field.node).keywords.enum) ?? [];
    });
    const all = lists.flat().map(canonicalJson);
    return lists.every((list) => list.length > 0) && new Set(all).size === all.length;
  })?.name;
}

/** OpenAI refuses unions of objects that begin with the same property. */
function putDistinctiveFieldsFirst(parents: Parents): void {
  const ordered = new Set<Node>();
  for (const { branches = [] } of parents.keys()) {
    const objects = branches.map(target).filter(({ fields, standsFor }) => fields && standsFor === undefined);
    const distinctive = distinctiveName(objects);
    const taken = new Set<string>();
    for (const object of objects.length > 1 ? objects : []) {
      const { fields = [] } = object;
      const choices = ordered.has(object) ? fields.slice(0, 1) : fields.filter(({ isRest }) => !isRest);
      const first =
        choices.find(({ name }) => name === distinctive) ?? choices.find(({ name }) => !taken.has(name));
      if (first === undefined) continue;
      taken.add(first.name);
      ordered.add(object);
      object.fields = [first, ...fields.filter((field) => field !== first)];
    }
  }
}

/** The property that contains the tag of a branch. */
const VARIANT = 'variant';

class SchemaWriter {
  readonly edits: StrictEdit[] = [];
  readonly #parents: Parents;
  readonly #recursive: ReadonlySet<Node>;
  readonly #definitions: Record<string, JsonSchema> = {};
  readonly #references = new Map<Node, string>();

  constructor(parents: Parents, recursive: ReadonlySet<Node>) {
    this.#parents = parents;
    this.#recursive = recursive;
  }

  write(root: Node, wrapper: string | undefined): JsonSchema {
    let schema: JsonSchema;
    if (wrapper === undefined) {
      this.#references.set(root, '#');
      schema = this.#inline(root, '');
    } else {
      this.edits.push({ at: '', kind: 'root' });
      schema = objectSchema([[wrapper, this.#write(root, wrapper)]]);
    }
    return Object.keys(this.#definitions).length > 0 ? { ...schema, $defs: this.#definitions } : schema;
  }

  /** The references to definitions that lead back to themselves. */
  endless(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const [node, reference] of this.#references)
      if (this.#recursive.has(node) || node.isBuiltIn) found.add(reference);
    return found;
  }

  #write(node: Node, at: string): JsonSchema {
    const isShared = (this.#parents.get(node)?.length ?? 0) > 1 && !this.#isSmall(node);
    if (!isShared && !node.isBuiltIn && !this.#recursive.has(node)) return this.#inline(node, at);
    const known = this.#references.get(node);
    if (known !== undefined) return { $ref: known };
    const plain = node.name?.replaceAll(/[^\w-]+/g, '_') || 'part';
    const name = freeName(plain, (taken) => Object.hasOwn(this.#definitions, taken), '_');
    this.#references.set(node, `#/$defs/${name}`);
    // Keeps its place before the definitions that it contains.
    setOwn(this.#definitions, name, {});
    const { length } = this.edits;
    setOwn(this.#definitions, name, this.#inline(node, `$defs.${name}`));
    if (node.isBuiltIn) this.edits.length = length;
    return { $ref: `#/$defs/${name}` };
  }

  /** Whether a node is too small for a definition, even if it is used often. */
  #isSmall(node: Node): boolean {
    if (node.fields !== undefined || this.#recursive.has(node)) return false;
    return childrenOf(node).every((part) => this.#isSmall(part));
  }

  #inline({ keywords, description, edits, items, fields, branches, tags }: Node, at: string): JsonSchema {
    for (const edit of edits) this.edits.push({ at, ...edit });
    let schema: JsonSchema = copyOfJson(keywords) as JsonSchema;
    if (items !== undefined) {
      const { type, ...limits } = schema;
      schema = { type, items: this.#write(items, childPath(at, 'items')), ...limits };
    } else if (fields !== undefined) {
      schema = objectSchema(
        fields.map((field) => [field.name, this.#field(field, childPath(at, field.name))]),
      );
    } else if (branches !== undefined) schema = this.#union(branches, tags, at);
    return described(schema, description);
  }

  #field(field: Field, at: string): JsonSchema {
    const schema = this.#write(field.node, at);
    const absence = absenceOf(field);
    if (absence === 'never') return schema;
    this.edits.push({ at, kind: absence === 'null' ? 'nullable' : 'optional-null' });
    if (absence === 'null') return nullable(schema);
    const description = `null leaves it out; {"${VALUE}": null} says null.`;
    return { description, anyOf: [objectSchema([[VALUE, schema]]), { type: 'null' }] };
  }

  #union(branches: readonly Node[], tags: Node['tags'], at: string): JsonSchema {
    const [only, ...others] = branches;
    if (only !== undefined && others.length === 0) return this.#write(only, at);
    if (tags !== undefined) this.edits.push({ at, kind: 'tagged' });
    const isNull = (node: Node): boolean => target(node).keywords.type === 'null';
    const schemas: JsonSchema[] = [];
    for (const branch of [...branches.filter((each) => !isNull(each)), ...branches.filter(isNull)]) {
      const place = childPath(at, `anyOf.${schemas.length}`);
      const tag = tags?.get(branch);
      if (tag === undefined) schemas.push(this.#write(branch, place));
      else {
        const value = this.#write(branch, childPath(place, VALUE));
        schemas.push(
          objectSchema([
            [VARIANT, { type: 'string', enum: [tag] }],
            [VALUE, value],
          ]),
        );
      }
    }
    const [first = {}, last, ...more] = schemas;
    return last?.type === 'null' && more.length === 0 ? nullable(first) : { anyOf: schemas };
  }
}

function objectSchema(rows: readonly (readonly [name: string, schema: JsonSchema])[]): JsonSchema {
  const required = rows.map(([name]) => name);
  return { type: 'object', properties: Object.fromEntries(rows), required, additionalProperties: false };
}

/** Puts a text before the schema's own description. A reference must not have other keywords. */
function described(schema: JsonSchema, text: string): JsonSchema {
  if (text === '') return schema;
  const { description: own, ...plain } = schema;
  const description = joined(text, own);
  return '$ref' in plain ? { description, anyOf: [plain] } : { description, ...plain };
}

function nullable(schema: JsonSchema): JsonSchema {
  const { description, ...plain } = schema;
  const { type, anyOf, enum: constants } = plain;
  const isScalar = typeof type === 'string' && type !== 'array' && type !== 'object';
  const values = isScalar && constants !== undefined ? { enum: [...constants, null] } : {};
  const written = isScalar
    ? { ...plain, type: [type, 'null'], ...values }
    : { anyOf: [...(anyOf ?? [plain]), { type: 'null' }] };
  return described(written, description ?? '');
}

/** A difference in a strict schema, and its places. */
export interface StrictNote {
  readonly what: string;
  /** Paths within the strict schema; empty for the root. */
  readonly places: readonly string[];
}

/** The differences of a strict schema as text. */
export interface StrictReport {
  /** Parts in another form, from which values are restored. */
  readonly rewritten: readonly StrictNote[];
  /** Constraints that only descriptions state; the check of the call applies them. */
  readonly checked: readonly StrictNote[];
}

/** Without a text: `said` is reported as checked, and calls drop properties that are `closed`. */
const WORDS: Readonly<Record<StrictEdit['kind'], string | undefined>> = {
  said: undefined,
  closed: undefined,
  anything: 'any value is a value of a definition, in which objects are lists of entries',
  constant: 'a constant is a list of one',
  merged: 'schemas that hold together are one',
  narrowed: 'other properties than the named ones are not taken',
  nullable: 'null leaves it out',
  'optional-null': 'null leaves it out, and its value, which may be null, stands in an object',
  pairs: 'an object with any keys is a list of pairs',
  rest: 'properties without a name of their own are a list of pairs',
  root: 'the whole stands in a property',
  tagged: 'the branches of a union have tags',
  tuple: 'the places of a list are properties',
  type: 'a type is said where only its keywords were',
  union: 'one of several is any of them',
};

/** Groups the edits by kind and describes them. */
function strictReport(edits: readonly StrictEdit[]): StrictReport {
  const rewritten = new Map<string, Set<string>>();
  const checked = new Map<string, Set<string>>();
  for (const edit of edits) {
    const text = WORDS[edit.kind];
    if (text !== undefined) cached(rewritten, text, () => new Set()).add(edit.at);
    const keyword = edit.kind === 'said' ? edit.keyword : 'oneOf';
    if (edit.kind === 'said' || edit.kind === 'union') cached(checked, keyword, () => new Set()).add(edit.at);
  }
  const notes = (placesOf: ReadonlyMap<string, ReadonlySet<string>>): readonly StrictNote[] =>
    Array.from(placesOf, ([what, places]) => ({ what, places: [...places] }));
  return { rewritten: notes(rewritten), checked: notes(checked) };
}

/** The strict form of a schema, with conversions in both directions. */
export interface StrictForm {
  readonly isStrict: true;
  /** The schema for requests with `strict: true`. */
  readonly schema: JsonSchema;
  /** Every difference. */
  readonly edits: readonly StrictEdit[];
  /** The differences as text for people. */
  readonly report: StrictReport;
  /**
   * Converts the strict arguments of a model to arguments of the original schema. Arguments that are not strict do
   * not change.
   */
  restore(args: unknown): unknown;
  /** Converts arguments of the original schema to strict ones, for the history that a model receives. */
  forward(args: unknown): unknown;
}

/** A schema without a strict form, with the reason. */
export interface NoStrictForm {
  readonly isStrict: false;
  readonly reasons: readonly string[];
}

/** The result of {@link strictSchema}. */
export type StrictSchema = StrictForm | NoStrictForm;

const known = new WeakMap<JsonSchema, StrictSchema>();

/**
 * The form of a schema for providers with strict tools (the documented subset of OpenAI), with the way back: a model
 * answers in the strict form, and `restore` converts the answer to the original schema. Constraints that the subset
 * does not support are stated in descriptions; the check of the call validates them.
 *
 * @example
 * ```ts
 * const strict = strictSchema({
 *   type: 'object',
 *   properties: { city: { type: 'string' }, limit: { type: 'integer' } },
 *   required: ['city'],
 * });
 * if (strict.isStrict) strict.restore({ city: 'Bern', limit: null }); // { city: 'Bern' }
 * ```
 */
export function strictSchema(schema: JsonSchema): StrictSchema {
  return cached(known, schema, compile);
}

/** Whether a schema is already in its strict form. */
export function isStrictForm(schema: JsonSchema): boolean {
  const strict = strictSchema(schema);
  return strict.isStrict && strict.edits.length === 0;
}

function compile(schema: JsonSchema): StrictSchema {
  try {
    const strict = compileForm(schema, true);
    if (strict.isStrict) return strict;
    // Arrays for properties that the schema does not describe can make it too large.
    const smaller = compileForm(schema, false);
    return smaller.isStrict ? smaller : strict;
  } catch (error) {
    if (error instanceof RangeError) return refused(['it is nested too deep']);
    throw error;
  }
}

function refused(reasons: readonly string[]): NoStrictForm {
  return frozen({ isStrict: false, reasons });
}

/** The property that contains arguments that are not an object, as in other offered unions. */
const WRAPPER = 'input';

function compileForm(source: JsonSchema, takesOthers: boolean): StrictSchema {
  const reader = new SchemaReader(source, takesOthers);
  const root = reader.readRoot();
  if (reader.faults.size > 0) return refused([...reader.faults]);
  const { fields, standsFor } = target(root);
  const isWrapped = fields === undefined || standsFor !== undefined;
  const { parents, recursive } = surveyOf(root);
  // Restoring needs the tags of unions, too.
  chooseTags(parents);
  putDistinctiveFieldsFirst(parents);
  const writer = new SchemaWriter(parents, recursive);
  const schema = writer.write(root, isWrapped ? WRAPPER : undefined);
  const faults = limitFaults(schema, writer.endless());
  if (faults.length > 0) return refused(faults);
  const { edits } = writer;
  const form = frozen({ isStrict: true as const, schema, edits, report: strictReport(edits) });
  return Object.freeze({
    ...form,
    restore: orAsGiven((args) => {
      if (!isWrapped) return restoreValue(root, args);
      const hasOnlyInput = isRecord(args) && Object.keys(args).join() === WRAPPER;
      return hasOnlyInput ? restoreValue(root, args[WRAPPER]) : copyOfJson(args);
    }),
    forward: orAsGiven((args) => {
      const strict = forwardValue(root, args);
      return isWrapped ? { [WRAPPER]: strict } : strict;
    }),
  });
}

/** Values that are nested too deeply do not change; the validation reports them. */
function orAsGiven(convert: (args: unknown) => unknown): (args: unknown) => unknown {
  return (args) => {
    try {
      return convert(args);
    } catch {
      return args;
    }
  };
}

function frozen<Value>(value: Value): Value {
  if (!isObject(value) || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}

/** The total size of a list with more constants than this is limited. */
const MANY_CONSTANTS = 250;

/** The documented limits that a strict schema exceeds. `endless`: the references to recursive definitions. */
function limitFaults(root: JsonSchema, endless: ReadonlySet<string>): readonly string[] {
  let properties = 0;
  let characters = 0;
  let constants = 0;
  let largest = 0;
  for (const schema of allSchemas(root)) {
    const names = Object.keys(schema.properties ?? {});
    const values = (schema.enum ?? []).map(String);
    properties += names.length;
    constants += values.length;
    characters += [...names, ...Object.keys(schema.$defs ?? {}), ...values].join('').length;
    if (values.length > MANY_CONSTANTS) largest = Math.max(largest, values.join('').length);
  }
  const { $defs = {}, ...whole } = root;
  const known = new Map<JsonSchema, number>();
  const levelsOf = (schema: JsonSchema): number => cached(known, schema, countLevels);
  const countLevels = (schema: JsonSchema): number => {
    const { $ref = '' } = schema;
    const definition = endless.has($ref) ? undefined : $defs[$ref.replace('#/$defs/', '')];
    const below = definition === undefined ? subschemas(schema) : [definition];
    const isLevel = schema.type === 'object' || schema.type === 'array';
    return Math.max(0, ...below.map(levelsOf)) + (isLevel ? 1 : 0);
  };
  // Recursive definitions have no end: each is counted separately.
  let levels = levelsOf(whole);
  for (const [name, definition] of Object.entries($defs))
    if (endless.has(`#/$defs/${name}`)) levels = Math.max(levels, levelsOf(definition));
  const faults: string[] = [];
  for (const [found, most, what] of [
    [properties, 5_000, 'properties'],
    [levels, 10, 'levels of objects and lists'],
    [characters, 120_000, 'characters of names and constants'],
    [constants, 1_000, 'constants'],
    [largest, 15_000, `characters of constants in one list of more than ${MANY_CONSTANTS}`],
  ] as const)
    if (found > most) faults.push(`it has ${found} ${what}, of at most ${most}`);
  return faults;
}

/** How a strict object marks an absent field: never, by `null`, or by `null` instead of `{ value }`. */
function absenceOf({ node, isRequired }: Field): 'never' | 'null' | 'wrapped' {
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

/**
 * Converts a strict value to the ordinary value. A value that is not strict does not change; the validation reports
 * it.
 */
function restoreValue(node: Node, value: unknown): unknown {
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
  let branch: Node | undefined;
  if (tags !== undefined) {
    if (!isRecord(value) || !hasOnly(value, [VARIANT, VALUE])) return undefined;
    branch = branches.find((each) => tags.get(each) === value[VARIANT]);
    return branch && restoreValue(branch, value[VALUE]);
  }
  if (branches.length === 1) branch = branches[0];
  else if (Array.isArray(value)) branch = branches.find((each) => target(each).items);
  else {
    // The object with exactly these keys, or the only one whose constants do not exclude the value.
    const possible = branches.filter((each) =>
      target(each).fields?.every(({ name, node }) => {
        const given = Object.hasOwn(value, name) ? (value as Fields)[name] : null;
        return given === null || (target(node).keywords.enum?.includes(given) ?? true);
      }),
    );
    const exact = possible.find((each) => {
      const names = target(each).fields?.map(({ name }) => name);
      return hasOnly(value, names);
    });
    branch = exact ?? (possible.length === 1 ? possible[0] : undefined);
  }
  return branch && restoreValue(branch, value);
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
  const parts: unknown[] = [];
  let isEnd = false;
  for (const field of fields) {
    const part = Object.hasOwn(value, field.name) ? value[field.name] : undefined;
    const isEmpty = field.isRest && Array.isArray(part) && part.length === 0;
    if (part === undefined || isEmpty || isAbsent(field, part)) {
      isEnd = true;
      continue;
    }
    const restored = restoreField(field, part);
    if (isEnd || (field.isRest && !Array.isArray(restored))) return undefined;
    if (field.isRest) parts.push(...(restored as readonly unknown[]));
    else parts.push(restored);
  }
  return parts;
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
function forwardValue(root: Node, args: unknown): unknown {
  return convert(root, copyOfJson(args), new Map()).strict;
}

/** Each object is converted once for each node, because unions may be nested. */
type Conversions = Map<Node, WeakMap<object, Converted>>;

function convert(node: Node, value: unknown, known: Conversions): Converted {
  const { branches, tags } = node;
  if (branches !== undefined) {
    // The branch that fits best; the first of several.
    const choices = branches.map((branch) => ({ ...convert(branch, value, known), tag: tags?.get(branch) }));
    const best = choices.reduce((one, other) => (other.misfit < one.misfit ? other : one));
    const { strict, tag, misfit } = best;
    return tag === undefined || misfit === 3 ? best : { strict: { [VARIANT]: tag, [VALUE]: strict }, misfit };
  }
  if (!isOfKind(node, value)) return { strict: value, misfit: 3 };
  if (!isObject(value)) return { strict: value, misfit: 0 };
  const ofNode = cached(known, node, () => new WeakMap<object, Converted>());
  return cached(ofNode, value, () => convertParts(node, value, known));
}

function convertParts({ items, fields, standsFor }: Node, value: object, known: Conversions): Converted {
  let misfit = 0;
  const convertPart = (node: Node, part: unknown): unknown => {
    const converted = convert(node, part, known);
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
  const named = fields.filter(({ isRest }) => !isRest);
  const byKey = new Map(
    named.map((field, index) => [standsFor === 'tuple' ? String(index) : field.name, field]),
  );
  const given = new Map<Field, unknown>();
  const others = {};
  for (const [key, part] of Object.entries(value)) {
    const field = byKey.get(key);
    if (field === undefined) setOwn(others, key, part);
    else given.set(field, part);
  }
  const strict = {};
  for (const field of fields) {
    const { name, node, isRequired, isRest } = field;
    if (isRest) {
      const rest = Array.isArray(value) ? value.slice(named.length) : others;
      setOwn(strict, name, convertPart(node, rest));
    } else if (given.has(field)) {
      const part = convertPart(node, given.get(field));
      setOwn(strict, name, absenceOf(field) === 'wrapped' ? { [VALUE]: part } : part);
    } else if (isRequired) misfit = 2;
    else setOwn(strict, name, null);
  }
  if (fields.some(({ isRest }) => isRest)) return { strict, misfit };
  for (const [key, part] of Object.entries(others)) {
    setOwn(strict, key, part);
    misfit ||= 1;
  }
  return { strict, misfit };
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
