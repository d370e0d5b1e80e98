import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { chooserOf } from './choose-branch.js';
import { coerceValue } from './coerce-value.js';
import type { DefaultsOf } from './fill-defaults.js';
import { type Shape, type ShapeSource, shapesOf } from './shape.js';

/** What was changed about the arguments, by path. */
export interface TidyNotes {
  /** Keys that the schema does not know, taken away. */
  readonly removed: string[];
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
}

/** A value brought into the form the schema describes; the input is never changed, only copied where needed. */
export type Tidier = (args: JsonObject, options: TidyOptions, notes: TidyNotes) => JsonObject;

/** The tidier of a schema: takes extra keys away and fills in defaults; where asked, mends types too. */
export function createTidier(schema: JsonSchema, defaultsOf: DefaultsOf): Tidier {
  const shapeOf = shapesOf(schema, defaultsOf);
  return (args, options, notes) => {
    const walk: Walk = { ...options, ...notes, shapeOf, root: schema };
    return tidyObject(shapeOf(schema), args, { walk, path: '' });
  };
}

interface Walk extends TidyOptions, TidyNotes {
  readonly shapeOf: (schema: JsonSchema) => Shape;
  readonly root: JsonSchema;
}

interface Place {
  readonly walk: Walk;
  readonly path: string;
}

function tidyValue(shape: Shape, value: unknown, place: Place): unknown {
  const branch = shape.anyOf.length > 0 ? chooserOf(shape.anyOf, place.walk.root)(value) : undefined;
  if (branch?.kind === 'branch') return tidyValue(place.walk.shapeOf(branch.branch), value, place);
  const mended = place.walk.mend ? mend(shape, value, place) : value;
  // What is now an object may show by its tag which branch it was meant for.
  if (mended !== value && shape.anyOf.length > 0) return tidyValue(shape, mended, place);
  if (Array.isArray(mended)) return shape.items ? tidyArray(shape.items(), mended, place) : mended;
  if (typeof mended !== 'object' || mended === null) return mended;
  return tidyObject(shape, mended as JsonObject, place);
}

function mend(shape: Shape, value: unknown, { walk, path }: Place): unknown {
  const mended = coerceValue(value, shape.types);
  if (mended === value) return value;
  walk.coerced.push(path);
  if (Array.isArray(mended) && mended[0] === value) walk.wrapped.push(path);
  return mended;
}

function tidyObject(shape: Shape, value: JsonObject, place: Place): JsonObject {
  const { walk } = place;
  let copy: JsonObject | undefined;
  for (const key of Object.keys(value)) {
    const path = place.path === '' ? key : `${place.path}.${key}`;
    const child = shape.properties.get(key) ?? shape.values;
    const before = value[key];
    if (child === undefined) {
      if (shape.keepsExtra) continue;
      walk.removed.push(path);
    } else if (!isAbsent({ shape, child, key, value: before, walk })) {
      const after = tidyValue(child(), before, { walk, path });
      if (after === before) continue;
      copy ??= { ...value };
      copy[key] = after;
      continue;
    }
    if (before === null && child !== undefined) walk.dropped.push(path);
    copy ??= { ...value };
    delete copy[key];
  }
  for (const [name, fallback] of shape.defaults) {
    if (Object.hasOwn(copy ?? value, name)) continue;
    copy ??= { ...value };
    copy[name] = typeof fallback === 'object' ? structuredClone(fallback) : fallback;
  }
  return copy ?? value;
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

function tidyArray(items: Shape, values: readonly unknown[], { walk, path }: Place): readonly unknown[] {
  let copy: unknown[] | undefined;
  values.forEach((value, index) => {
    const after = tidyValue(items, value, { walk, path: path === '' ? String(index) : `${path}.${index}` });
    if (after === value) return;
    copy ??= [...values];
    copy[index] = after;
  });
  return copy ?? values;
}
