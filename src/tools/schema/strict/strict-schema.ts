import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import { freeName } from '../../../core/kernel/free-name.js';
import {
  canonicalJson,
  childPath,
  copyOfJson,
  isObject,
  isRecord,
  setOwn,
} from '../../../core/kernel/json.js';
import { allSchemas, subschemas } from '../keywords.js';
import {
  absenceOf,
  childrenOf,
  type Edit,
  type EditKind,
  type Field,
  forwardValue,
  isNever,
  joined,
  type Node,
  restoreValue,
  target,
  VALUE,
  VARIANT,
} from './node.js';
import { SchemaReader } from './schema-reader.js';

/** A difference between a schema and its strict form, with its path in the strict schema; empty for the root. */
export type StrictEdit = Edit & { readonly at: string };

interface WrittenSchema {
  readonly schema: JsonSchema;
  readonly edits: readonly StrictEdit[];
  /** The references to definitions that lead back to themselves. */
  readonly recursive: ReadonlySet<string>;
}

interface Survey {
  /** Every node, with the nodes that use it. */
  readonly parents: ReadonlyMap<Node, readonly Node[]>;
  readonly recursive: ReadonlySet<Node>;
}

function surveyOf(root: Node): Survey {
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
function chooseTags({ parents }: Survey): void {
  const rewritten = new Set(
    [...parents.keys()].filter(
      ({ standsFor, fields = [] }) =>
        standsFor !== undefined || fields.some(({ isRequired, isRest }) => !isRequired || isRest),
    ),
  );
  for (const node of rewritten) for (const parent of parents.get(node) ?? []) rewritten.add(parent);
  const areConfused = (nodes: readonly Node[]): boolean =>
    nodes.length > 1 && nodes.some((node) => rewritten.has(node)) && distinctiveName(nodes) === undefined;
  for (const union of parents.keys()) {
    const { branches = [] } = union;
    const lists = branches.filter((branch) => target(branch).items);
    const objects = branches.filter((branch) => target(branch).fields);
    const byKeys = Map.groupBy(objects, (branch) =>
      canonicalJson(
        target(branch)
          .fields?.map(({ name }) => name)
          .sort(),
      ),
    );
    if ([lists, ...byKeys.values()].some(areConfused)) union.tags = tagsFor(branches);
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

/** A tag for each branch with parts: its name, or its number. */
function tagsFor(branches: readonly Node[]): ReadonlyMap<Node, string> {
  const tags = new Map<string, Node>();
  for (const [index, branch] of branches.entries()) {
    const { name, standsFor, fields, items } = target(branch);
    if (fields === undefined && items === undefined) continue;
    let tag = name ?? `${standsFor ?? (fields ? 'object' : 'list')}_${index + 1}`;
    while (tags.has(tag)) tag += '_';
    tags.set(tag, branch);
  }
  return new Map([...tags].map(([tag, branch]) => [branch, tag]));
}

/** OpenAI refuses unions of objects that begin with the same property. */
function putDistinctiveFieldsFirst({ parents }: Survey): void {
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

class SchemaWriter {
  readonly #edits: StrictEdit[] = [];
  readonly #survey: Survey;
  readonly #definitions: Record<string, JsonSchema> = {};
  readonly #references = new Map<Node, string>();

  constructor(survey: Survey) {
    this.#survey = survey;
  }

  write(root: Node, wrapper: string | undefined): WrittenSchema {
    if (wrapper === undefined) this.#references.set(root, '#');
    else this.#note('', 'root');
    const schema =
      wrapper === undefined ? this.#inline(root, '') : objectSchema([[wrapper, this.#write(root, wrapper)]]);
    const hasDefinitions = Object.keys(this.#definitions).length > 0;
    const endless = [...this.#references].filter(
      ([node]) => this.#survey.recursive.has(node) || node.isBuiltIn,
    );
    return {
      schema: hasDefinitions ? { ...schema, $defs: this.#definitions } : schema,
      edits: this.#edits,
      recursive: new Set(endless.map(([, reference]) => reference)),
    };
  }

  #write(node: Node, at: string): JsonSchema {
    const isShared = (this.#survey.parents.get(node)?.length ?? 0) > 1 && !this.#isSmall(node);
    const isDefined = isShared || node.isBuiltIn || this.#survey.recursive.has(node);
    return isDefined ? this.#reference(node) : this.#inline(node, at);
  }

  /** Whether a node is too small for a definition, even if it is used often. */
  #isSmall(node: Node): boolean {
    if (node.fields !== undefined || this.#survey.recursive.has(node)) return false;
    return childrenOf(node).every((part) => this.#isSmall(part));
  }

  #reference(node: Node): JsonSchema {
    const known = this.#references.get(node);
    if (known !== undefined) return { $ref: known };
    const plain = node.name?.replaceAll(/[^\w-]+/g, '_') || 'part';
    const name = freeName(plain, (taken) => Object.hasOwn(this.#definitions, taken), '_');
    this.#references.set(node, `#/$defs/${name}`);
    setOwn(this.#definitions, name, {});
    const { length } = this.#edits;
    setOwn(this.#definitions, name, this.#inline(node, `$defs.${name}`));
    if (node.isBuiltIn) this.#edits.length = length;
    return { $ref: `#/$defs/${name}` };
  }

  #inline({ keywords, description, edits, items, fields, branches, tags }: Node, at: string): JsonSchema {
    this.#edits.push(...edits.map((edit) => ({ at, ...edit })));
    let schema: JsonSchema = copyOfJson(keywords) as JsonSchema;
    if (items !== undefined) {
      const { type, ...limits } = schema;
      schema = { type, items: this.#write(items, childPath(at, 'items')), ...limits };
    } else if (fields !== undefined)
      schema = objectSchema(
        fields.map((field) => [field.name, this.#field(field, childPath(at, field.name))]),
      );
    else if (branches !== undefined) schema = this.#union(branches, tags, at);
    return described(schema, description);
  }

  #field(field: Field, at: string): JsonSchema {
    const schema = this.#write(field.node, at);
    const absence = absenceOf(field);
    if (absence === 'never') return schema;
    this.#note(at, absence === 'null' ? 'nullable' : 'optional-null');
    if (absence === 'null') return nullable(schema);
    const description = `null leaves it out; {"${VALUE}": null} says null.`;
    return { description, anyOf: [objectSchema([[VALUE, schema]]), { type: 'null' }] };
  }

  #union(branches: readonly Node[], tags: Node['tags'], at: string): JsonSchema {
    const [only, ...others] = branches;
    if (only !== undefined && others.length === 0) return this.#write(only, at);
    if (tags !== undefined) this.#note(at, 'tagged');
    const schemas = branches
      .toSorted((one, other) => Number(isNull(one)) - Number(isNull(other)))
      .map((branch, index) => {
        const place = childPath(at, `anyOf.${index}`);
        const tag = tags?.get(branch);
        if (tag === undefined) return this.#write(branch, place);
        const value = this.#write(branch, childPath(place, VALUE));
        return objectSchema([
          [VARIANT, { type: 'string', enum: [tag] }],
          [VALUE, value],
        ]);
      });
    const [first = {}, last, ...more] = schemas;
    return last?.type === 'null' && more.length === 0 ? nullable(first) : { anyOf: schemas };
  }

  #note(at: string, kind: EditKind): void {
    this.#edits.push({ at, kind });
  }
}

function isNull(node: Node): boolean {
  return target(node).keywords.type === 'null';
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
  return {
    rewritten: notesOn(edits, ({ kind }) => WORDS[kind]),
    checked: notesOn(edits, (edit) => {
      if (edit.kind === 'said') return edit.keyword;
      return edit.kind === 'union' ? 'oneOf' : undefined;
    }),
  };
}

/** The places of the edits by the note about them; an edit without a note is left out. */
function notesOn(
  edits: readonly StrictEdit[],
  textOf: (edit: StrictEdit) => string | undefined,
): readonly StrictNote[] {
  const notes = new Map<string, Set<string>>();
  for (const edit of edits) {
    const what = textOf(edit);
    if (what !== undefined) cached(notes, what, () => new Set()).add(edit.at);
  }
  return Array.from(notes, ([what, places]) => ({ what, places: [...places] }));
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

function compileForm(schema: JsonSchema, takesOthers: boolean): StrictSchema {
  const reader = new SchemaReader(schema, takesOthers);
  const root = reader.readRoot();
  if (reader.faults.size > 0) return refused([...reader.faults]);
  if (isNever(root)) return refused(['no arguments fit it']);
  const { fields, standsFor } = target(root);
  const isWrapped = fields === undefined || standsFor !== undefined;
  const survey = surveyOf(root);
  // Restoring needs the tags of unions, too.
  chooseTags(survey);
  putDistinctiveFieldsFirst(survey);
  const { recursive, ...written } = new SchemaWriter(survey).write(root, isWrapped ? WRAPPER : undefined);
  const faults = limitFaults(written.schema, recursive);
  if (faults.length > 0) return refused(faults);
  const form = frozen({ isStrict: true as const, ...written, report: strictReport(written.edits) });
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

/** The documented limits that a strict schema exceeds. */
function limitFaults(root: JsonSchema, recursive: WrittenSchema['recursive']): readonly string[] {
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
  const limits = [
    [properties, 5_000, 'properties'],
    [levelsOf(root, recursive), 10, 'levels of objects and lists'],
    [characters, 120_000, 'characters of names and constants'],
    [constants, 1_000, 'constants'],
    [largest, 15_000, `characters of constants in one list of more than ${MANY_CONSTANTS}`],
  ] as const;
  return limits
    .filter(([found, most]) => found > most)
    .map(([found, most, what]) => `it has ${found} ${what}, of at most ${most}`);
}

/** The levels of objects and arrays. Recursive definitions have no end: each is counted separately. */
function levelsOf(root: JsonSchema, recursive: WrittenSchema['recursive']): number {
  const { $defs = {}, ...whole } = root;
  const known = new Map<JsonSchema, number>();
  const levels = (schema: JsonSchema): number => cached(known, schema, countLevels);
  const countLevels = (schema: JsonSchema): number => {
    const { $ref = '' } = schema;
    const definition = recursive.has($ref) ? undefined : $defs[$ref.replace('#/$defs/', '')];
    const below = definition === undefined ? subschemas(schema) : [definition];
    const isLevel = schema.type === 'object' || schema.type === 'array';
    return Math.max(0, ...below.map(levels)) + (isLevel ? 1 : 0);
  };
  const endless = Object.keys($defs).filter((name) => recursive.has(`#/$defs/${name}`));
  return Math.max(levels(whole), ...endless.map((name) => levels($defs[name] ?? {})));
}
