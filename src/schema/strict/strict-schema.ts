import type { JsonSchema } from '../../contract/json-schema.js';
import { copyOfJson, isRecord } from '../../kernel/json.js';
import { findReference } from '../find-reference.js';
import { subschemas } from '../keywords.js';
import type { Extras } from './compound-plans.js';
import { Forms } from './forms.js';
import { Forwarder } from './forward.js';
import type { Use } from './plan.js';
import { PlanReader } from './plan-reader.js';
import { Restorer } from './restore.js';
import { type StrictEdit, type StrictReport, strictReport, writeStrict } from './write-strict.js';

/** The strict form of a schema, and the way back. */
export interface StrictForm {
  readonly isStrict: true;
  /** What a provider is sent with `strict: true`. */
  readonly schema: JsonSchema;
  /** Every place where it differs. */
  readonly edits: readonly StrictEdit[];
  /** The same for people. */
  readonly report: StrictReport;
  /** From the arguments that a model gave to those that the schema itself speaks of. What is not strict stays as it is. */
  restore(args: unknown): unknown;
  /** From arguments of the schema itself to strict ones, as a history shows them to a model. */
  forward(args: unknown): unknown;
}

/** A schema that has no strict form, and why. */
export interface NoStrictForm {
  readonly isStrict: false;
  readonly reasons: readonly string[];
}

/** What {@link strictSchema} makes of a schema. */
export type StrictSchema = StrictForm | NoStrictForm;

const known = new WeakMap<JsonSchema, StrictSchema>();

/**
 * The form of a schema that providers with strict tools take (the documented subset of OpenAI), with the way
 * back: a model answers in the strict form, and `restore` makes of that what the schema itself says. What the
 * subset has no words for is said in descriptions, and judged by the check of the call as before.
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
  const before = known.get(schema);
  if (before !== undefined) return before;
  const strict = compile(schema);
  known.set(schema, strict);
  return strict;
}

/** Whether a schema is in its strict form already, so that a provider may be told that it is strict. */
export function isStrictForm(schema: JsonSchema): boolean {
  const strict = strictSchema(schema);
  return strict.isStrict && strict.edits.length === 0;
}

function compile(schema: JsonSchema): StrictSchema {
  try {
    const strict = compilePlan(schema, 'kept');
    if (strict.isStrict) return strict;
    // Lists for properties that nobody speaks of make a large schema too large.
    const smaller = compilePlan(schema, 'closed');
    return smaller.isStrict ? smaller : strict;
  } catch (error) {
    if (error instanceof RangeError) return refused(['it is nested too deep']);
    throw error;
  }
}

function refused(reasons: readonly string[]): NoStrictForm {
  return frozen({ isStrict: false, reasons });
}

/** The property that holds arguments that are strictly no object, as it is where unions are offered. */
const WRAPPER = 'input';

function compilePlan(schema: JsonSchema, extras: Extras): StrictSchema {
  const reader = new PlanReader(schema, extras);
  const root = reader.read();
  if (reader.faults.size > 0) return refused([...reader.faults]);
  const { kind } = root.slot.plan;
  if (kind === 'never') return refused(['no arguments fit it']);
  const wrapper = kind === 'object' ? undefined : WRAPPER;
  const forms = new Forms(root);
  const written = writeStrict(root, forms, wrapper);
  const faults = limitFaults(written.schema);
  if (faults.length > 0) return refused(faults);
  const { restore, forward } = waysOf(root, forms, wrapper);
  const report = strictReport(written.edits);
  return Object.freeze({ ...frozen({ isStrict: true as const, ...written, report }), restore, forward });
}

function waysOf(
  root: Use,
  forms: Forms,
  wrapper: string | undefined,
): Pick<StrictForm, 'restore' | 'forward'> {
  const restorer = new Restorer(forms);
  const forwarder = new Forwarder(forms);
  return {
    restore: orAsGiven((args) => {
      if (wrapper === undefined) return restorer.restore(root.slot, args);
      const isWrapped = isRecord(args) && Object.hasOwn(args, wrapper) && Object.keys(args).length === 1;
      return isWrapped ? restorer.restore(root.slot, args[wrapper]) : copyOfJson(args);
    }),
    forward: orAsGiven((args) => {
      const strict = forwarder.forward(root.slot, args);
      return wrapper === undefined ? strict : { [wrapper]: strict };
    }),
  };
}

/** What is nested too deep is left as it is; others tell of it. */
function orAsGiven(way: (args: unknown) => unknown): (args: unknown) => unknown {
  return (args) => {
    try {
      return way(args);
    } catch {
      return args;
    }
  };
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}

const MOST_PROPERTIES = 5_000;
const MOST_LEVELS = 10;
const MOST_CHARACTERS = 120_000;
const MOST_CONSTANTS = 1_000;
const MANY_CONSTANTS = 250;
const MOST_CHARACTERS_OF_MANY = 15_000;

/** Why a strict schema is too large: the documented limits of its whole. */
function limitFaults(schema: JsonSchema): readonly string[] {
  const { properties, characters, constants, largest } = sizesOf(schema);
  const levels = levelsOf(schema);
  const faults: string[] = [];
  const tell = (found: number, most: number, what: string): void => {
    if (found > most) faults.push(`it has ${found} ${what}, of at most ${most}`);
  };
  tell(properties, MOST_PROPERTIES, 'properties');
  tell(levels, MOST_LEVELS, 'levels of objects and lists');
  tell(characters, MOST_CHARACTERS, 'characters of names and constants');
  tell(constants, MOST_CONSTANTS, 'constants');
  tell(
    largest,
    MOST_CHARACTERS_OF_MANY,
    `characters of constants in one list of more than ${MANY_CONSTANTS}`,
  );
  return faults;
}

interface Sizes {
  properties: number;
  characters: number;
  constants: number;
  largest: number;
}

function sizesOf(root: JsonSchema): Readonly<Sizes> {
  const sizes: Sizes = { properties: 0, characters: 0, constants: 0, largest: 0 };
  const count = (schema: JsonSchema): void => {
    const { properties = {}, $defs = {}, enum: constants = [] } = schema;
    const names = Object.keys(properties);
    const ofConstants = charactersOf(
      constants.map((value) => (typeof value === 'string' ? value : String(value))),
    );
    sizes.properties += names.length;
    sizes.constants += constants.length;
    sizes.characters += charactersOf([...names, ...Object.keys($defs)]) + ofConstants;
    if (constants.length > MANY_CONSTANTS) sizes.largest = Math.max(sizes.largest, ofConstants);
    for (const part of subschemas(schema)) count(part);
  };
  count(root);
  return sizes;
}

function charactersOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

/**
 * How deep objects and lists stand within each other: definitions where they are used, but those that lead back to
 * themselves, which have no end, for themselves.
 */
function levelsOf(root: JsonSchema): number {
  const known = new Map<JsonSchema, number>();
  const targetOf = ({ $ref }: JsonSchema): JsonSchema | undefined => {
    const target = $ref === undefined ? undefined : findReference($ref, { root });
    return typeof target === 'object' ? target : undefined;
  };
  const endless = endlessOf([root, ...Object.values(root.$defs ?? {})], targetOf);
  const deepest = (schemas: readonly JsonSchema[]): number => Math.max(0, ...schemas.map(levels));
  function levels(schema: JsonSchema): number {
    const before = known.get(schema);
    if (before !== undefined) return before;
    const target = targetOf(schema);
    const isLevel = schema.type === 'object' || schema.type === 'array';
    const inner = target !== undefined && !endless.has(target) ? [target] : [];
    const found = (isLevel ? 1 : 0) + deepest([...partsOf(schema), ...inner]);
    known.set(schema, found);
    return found;
  }
  return deepest([root, ...endless]);
}

function partsOf({ $defs: _, ...schema }: JsonSchema): readonly JsonSchema[] {
  return subschemas(schema);
}

/** The schemas that lead back to themselves. */
function endlessOf(
  schemas: readonly JsonSchema[],
  targetOf: (schema: JsonSchema) => JsonSchema | undefined,
): ReadonlySet<JsonSchema> {
  const leadsBack = (start: JsonSchema): boolean => {
    const seen = new Set(partsOf(start));
    for (const schema of seen) {
      for (const part of partsOf(schema)) seen.add(part);
      const target = targetOf(schema);
      if (target !== undefined) seen.add(target);
    }
    return seen.has(start);
  };
  return new Set(schemas.filter(leadsBack));
}
