import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { misspeltName } from '../kernel/nearest-name.js';
import { setOwn } from '../kernel/set-own.js';
import { chooserOf } from './choose-branch.js';
import { coerceValue, digitsOf } from './coerce-value.js';
import type { DefaultsOf } from './fill-defaults.js';
import { levelOf, type SchemaLevel } from './schema-level.js';
import { type Shape, type ShapeSource, shapesOf } from './shape.js';

/** What was changed about the arguments, by path. */
export interface TidyNotes {
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
  const branch = shape.anyOf.length > 0 ? chooserOf(shape.anyOf, place.walk.root)(value) : undefined;
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
