import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { setOwn } from '../kernel/json.js';
import { misspeltName } from '../kernel/nearest-name.js';
import { isSchemaNode } from '../schema/keywords.js';
import { BIGINT_DIGITS } from '../schema/value-type.js';
import { OPEN_KEYWORDS } from './closed-schema.js';
import { parseExactJson } from './exact-json.js';
import { fitsSchema } from './interpreter/interpret-schema.js';
import {
  branchTypes,
  isOfType,
  levelOf,
  resolveReference,
  type SchemaLevel,
  unionChooser,
} from './schema-level.js';

/** What was changed about the arguments, by path. */
interface TidyNotes {
  /** Keys that the schema does not know, taken away. */
  readonly removed: string[];
  /** Of those, the ones that are hardly but a slip of an optional key that was not sent. */
  readonly misspelt: string[];
  /** Keys that another schema than the one that was meant speaks of, and that therefore stay. */
  readonly spared: string[];
  /** Values that were turned into the type that the schema wants. */
  readonly coerced: string[];
  /** Of those, the ones that were put into an array of one. */
  readonly wrapped: string[];
  /** Optional properties that were sent as `null`, which means absent. */
  readonly dropped: string[];
}

/** How far tidying may go. */
export interface TidyOptions {
  /** Mend types and drop `null`; only after plain validation failed. */
  readonly mend: boolean;
  /** Which keys are extra: those of which no schema speaks that may apply, those that the meant one does not know, or none. */
  readonly extra: 'unnamed' | 'unknown' | 'none';
}

/** A value brought into the form the schema describes; the input is never changed, only copied where needed. */
export type Tidier = (args: JsonObject, options: TidyOptions, notes: TidyNotes) => JsonObject;

/** The tidier of a schema: takes extra keys away and fills in defaults; where asked, mends types too. */
export function createTidier(schema: JsonSchema, defaultsOf: DefaultsOf): Tidier {
  const shapeOf = shapesOf(schema, defaultsOf);
  return (args, { mend, extra }, notes) => {
    const walk: Walk = { mend, extra, notes, shapeOf, root: schema };
    return tidyObject(shapeOf(schema), args, new Place(walk));
  };
}

interface Walk extends TidyOptions {
  readonly notes: TidyNotes;
  readonly shapeOf: (schema: JsonSchema) => Shape;
  readonly root: JsonSchema;
}

/** Beyond this many unknown keys, slips are not looked for. */
const MAX_LOOKED_AT = 50;

/** Where a value lies. Its path and what the schemas say about it are worked out only for those who ask. */
class Place {
  readonly walk: Walk;
  readonly #step: string | number;
  readonly #above: Place | undefined;

  constructor(walk: Walk, step: string | number = '', above?: Place) {
    this.walk = walk;
    this.#step = step;
    this.#above = above;
  }

  get path(): string {
    const above = this.#above?.path ?? '';
    return above === '' ? String(this.#step) : `${above}.${this.#step}`;
  }

  get level(): SchemaLevel {
    return this.#above?.level.below(String(this.#step)) ?? levelOf(this.walk.root);
  }

  below(step: string | number): Place {
    return new Place(this.walk, step, this);
  }
}

function tidyValue(shape: Shape, value: unknown, place: Place): unknown {
  if (!place.walk.mend && (typeof value !== 'object' || value === null)) return value;
  const branch = shape.anyOf.length > 0 ? unionChooser(shape.anyOf, place.walk.root)(value) : undefined;
  if (branch?.kind === 'branch') return tidyValue(place.walk.shapeOf(branch.branch), value, place);
  const mended = place.walk.mend ? mend(shape, value, place) : value;
  // What is now an object may show by its tag which branch it was meant for.
  if (mended !== value && shape.anyOf.length > 0) return tidyValue(shape, mended, place);
  if (Array.isArray(mended)) return shape.items ? tidyArray(shape.items(), mended, place) : mended;
  if (typeof mended !== 'object' || mended === null) return mended;
  return tidyObject(shape, mended as JsonObject, place);
}

function mend(shape: Shape, value: unknown, place: Place): unknown {
  const mended = digitsOf(value, shape.schema) ?? coerceValue(value, shape.types);
  if (mended === value) return value;
  const { notes } = place.walk;
  const { path } = place;
  notes.coerced.push(path);
  if (Array.isArray(mended) && mended[0] === value) notes.wrapped.push(path);
  return mended;
}

function tidyObject(shape: Shape, value: JsonObject, place: Place): JsonObject {
  const { walk } = place;
  let copy: JsonObject | undefined;
  let gone: Set<string> | undefined;
  for (const key of Object.keys(value)) {
    const child = shape.properties.get(key) ?? shape.values;
    const before = value[key];
    if (child === undefined) {
      if (shape.keepsExtra || !isExtra(key, place)) continue;
      noteRemoved(key, { shape, value, place });
    } else if (!isAbsent({ shape, child, key, value: before, walk })) {
      const after = tidyValue(child(), before, place.below(key));
      if (after === before) continue;
      copy ??= { ...value };
      copy[key] = after;
      continue;
    }
    if (before === null && child !== undefined) walk.notes.dropped.push(place.below(key).path);
    gone ??= new Set();
    gone.add(key);
  }
  if (gone !== undefined) copy = without(gone, copy ?? value);
  for (const [name, fallback] of shape.defaults) {
    if (Object.hasOwn(copy ?? value, name)) continue;
    copy ??= { ...value };
    setOwn(copy, name, typeof fallback === 'object' ? structuredClone(fallback) : fallback);
  }
  return copy ?? value;
}

/** Made anew: an object that fields were deleted from is slow ever after. */
function without(gone: ReadonlySet<string>, value: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const key of Object.keys(value)) if (!gone.has(key)) setOwn(kept, key, value[key]);
  return kept;
}

function isExtra(key: string, place: Place): boolean {
  const { extra, notes } = place.walk;
  if (extra !== 'unnamed') return extra === 'unknown';
  const isNamed = place.level.names(key);
  if (isNamed) notes.spared.push(key);
  return !isNamed;
}

interface RemovedFrom {
  readonly shape: Shape;
  readonly value: JsonObject;
  readonly place: Place;
}

function noteRemoved(key: string, { shape, value, place }: RemovedFrom): void {
  const { removed, misspelt } = place.walk.notes;
  const { path } = place.below(key);
  removed.push(path);
  if (removed.length > MAX_LOOKED_AT) return;
  const open = [...shape.properties.keys()].filter(
    (name) => !shape.required.has(name) && !Object.hasOwn(value, name),
  );
  if (misspeltName(key, open) !== undefined) misspelt.push(path);
}

/** `null` for an optional property means absent: strict-mode models send it. */
function isAbsent(of: {
  readonly shape: Shape;
  readonly child: ShapeSource;
  readonly key: string;
  readonly value: unknown;
  readonly walk: Walk;
}): boolean {
  if (of.value === undefined) return true;
  if (of.value !== null || !of.walk.mend || of.shape.required.has(of.key)) return false;
  return !acceptsNull(of.child(), of.walk);
}

function acceptsNull(shape: Shape, walk: Walk): boolean {
  if (shape.types.length > 0) return shape.types.includes('null');
  if (shape.schema.enum !== undefined) return shape.schema.enum.includes(null);
  if (shape.anyOf.length > 0) return shape.anyOf.some((branch) => acceptsNull(walk.shapeOf(branch), walk));
  return shape.schema.const === undefined || shape.schema.const === null;
}

function tidyArray(items: Shape, values: readonly unknown[], place: Place): readonly unknown[] {
  let copy: unknown[] | undefined;
  values.forEach((value, index) => {
    const after = tidyValue(items, value, place.below(index));
    if (after === value) return;
    copy ??= [...values];
    copy[index] = after;
  });
  return copy ?? values;
}

/**
 * What tidying needs to know of one schema, read once: which keys are known, what their defaults are, and
 * which of them may be absent.
 */
interface Shape {
  readonly schema: JsonSchema;
  /** JSON types the schema or its branches allow; empty where it does not say. */
  readonly types: readonly string[];
  readonly properties: ReadonlyMap<string, ShapeSource>;
  readonly required: ReadonlySet<string>;
  readonly defaults: readonly (readonly [name: string, value: unknown])[];
  /** Keys that `properties` does not list stay. */
  readonly keepsExtra: boolean;
  readonly items?: ShapeSource;
  readonly values?: ShapeSource;
  readonly anyOf: readonly JsonSchema[];
}

/** A shape read when it is first needed, so that recursive schemas end. */
type ShapeSource = () => Shape;

/** The shapes of one root schema. */
function shapesOf(root: JsonSchema, defaultsOf: DefaultsOf): (schema: JsonSchema) => Shape {
  const known = new WeakMap<JsonSchema, Shape>();
  const shapeOf = (schema: JsonSchema): Shape => {
    const resolved = resolveReference(schema, root);
    const existing = known.get(resolved);
    if (existing !== undefined) return existing;
    const shape = readShape(resolved, { root, defaultsOf, later: (child) => () => shapeOf(child) });
    known.set(resolved, shape);
    return shape;
  };
  return shapeOf;
}

interface ShapeReader {
  readonly root: JsonSchema;
  readonly defaultsOf: DefaultsOf;
  readonly later: (schema: JsonSchema) => ShapeSource;
}

function readShape(schema: JsonSchema, { root, defaultsOf, later }: ShapeReader): Shape {
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) => name !== '__proto__');
  const { additionalProperties, items } = schema;
  return {
    schema,
    types: schema.type === undefined ? branchTypes(schema.anyOf ?? [], root) : [schema.type].flat(),
    properties: new Map(properties.map(([name, child]) => [name, later(child)])),
    required: new Set(schema.required),
    defaults: defaultsOf(schema),
    keepsExtra:
      schema.properties === undefined ||
      additionalProperties === true ||
      isSchemaNode(additionalProperties) ||
      OPEN_KEYWORDS.some((keyword) => keyword in schema),
    items: isSchemaNode(items) ? later(items) : undefined,
    values: isSchemaNode(additionalProperties) ? later(additionalProperties) : undefined,
    anyOf: schema.anyOf ?? [],
  };
}

/** The digits of a whole number, where a schema asks for those of a `bigint`; nothing is lost below 2^53. */
function digitsOf(value: unknown, { type, pattern }: JsonSchema): string | undefined {
  if (pattern !== BIGINT_DIGITS || !Number.isSafeInteger(value)) return undefined;
  const isText = [type].flat().every((name) => name === 'string' || name === 'null');
  return isText ? String(value) : undefined;
}

/**
 * The value in a type that is wanted, where that loses nothing; otherwise the value itself:
 * text → number, integer, boolean; one value → array of one; JSON text → object or array. Never number →
 * string (but the digits of a `bigint`), never `null` → `""` or `0`, never `true` → `1`.
 */
function coerceValue(value: unknown, types: readonly string[]): unknown {
  if (types.length === 0 || value === null || types.some((type) => isOfType(value, type))) return value;
  if (typeof value === 'string') {
    const fromText = coerceText(value, types);
    if (fromText !== undefined) return fromText;
  }
  // Where something else would do as well, it is not said that a list was meant.
  const wantsList = types.includes('array') && types.every((type) => type === 'array' || type === 'null');
  return wantsList ? [value] : value;
}

function coerceText(text: string, types: readonly string[]): unknown {
  const trimmed = text.trim();
  if (types.includes('number') || types.includes('integer')) {
    const number = readNumber(trimmed);
    if (number !== undefined && (types.includes('number') || Number.isInteger(number))) return number;
  }
  if (types.includes('boolean') && (trimmed === 'true' || trimmed === 'false')) return trimmed === 'true';
  if (types.includes('object') && trimmed.startsWith('{')) return readJson(trimmed, 'object');
  if (types.includes('array') && trimmed.startsWith('[')) return readJson(trimmed, 'array');
  return undefined;
}

/** No double needs more to be written down. */
const MAX_DIGITS = 400;
const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The number a text spells, if no digit of it is lost. */
function readNumber(text: string): number | undefined {
  if (text.length > MAX_DIGITS || !DECIMAL.test(text)) return undefined;
  const number = Number(text);
  const digits = text
    .replace(/[eE].*$/, '')
    .replace(/[^\d]/g, '')
    .replace(/^0+/, '')
    .replace(/0+$/, '');
  return Number.isFinite(number) && digits.length <= 15 ? number : undefined;
}

function readJson(text: string, type: string): unknown {
  try {
    const value: unknown = parseExactJson(text);
    return isOfType(value, type) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Arguments with the defaults of what was left out; copied only where something was. */
type Filler = (args: JsonObject) => JsonObject;

/** The defaults of a schema's own properties, not of those below. */
export type DefaultsOf = (schema: JsonSchema) => readonly (readonly [name: string, value: unknown])[];

/**
 * What to fill in, within one whole schema: defaults that their own schema accepts. What it refuses, such as
 * the `null` of a number that some libraries write for "none", is left out as if it were not there.
 */
export function fittingDefaults(root: JsonSchema): DefaultsOf {
  return ({ properties = {} }) =>
    Object.entries(properties).flatMap(([name, property]) => {
      if (name === '__proto__' || !isSchemaNode(property) || property.default === undefined) return [];
      return fitsSchema(property.default, { schema: property, root })
        ? [[name, property.default] as const]
        : [];
    });
}

/** Fills in the defaults of a schema's own properties, not of those below. */
export function createFiller(defaults: ReturnType<DefaultsOf>): Filler {
  if (defaults.length === 0) return (args) => args;
  return (args) => {
    let filled = args;
    for (const [name, fallback] of defaults) {
      if (Object.hasOwn(args, name) && args[name] !== undefined) continue;
      if (filled === args) filled = { ...args };
      setOwn(filled, name, typeof fallback === 'object' ? structuredClone(fallback) : fallback);
    }
    return filled;
  };
}
