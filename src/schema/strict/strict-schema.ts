import type { JsonSchema } from '../../contract/json-schema.js';
import { copyOfJson, isRecord } from '../../kernel/json.js';
import { allSchemas, subschemas } from '../keywords.js';
import { forwardValue, isNever, restoreValue, target } from './node.js';
import { SchemaReader } from './schema-reader.js';
import {
  type StrictEdit,
  type StrictReport,
  strictReport,
  type WrittenSchema,
  writeStrictSchema,
} from './write-strict.js';

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
    const strict = compileForm(schema, true);
    if (strict.isStrict) return strict;
    // Lists for properties that the schema does not describe can make it too large.
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

/** The property that holds arguments that are not an object, as everywhere where unions are offered. */
const WRAPPER = 'input';

function compileForm(schema: JsonSchema, takesOthers: boolean): StrictSchema {
  const reader = new SchemaReader(schema, takesOthers);
  const root = reader.readRoot();
  if (reader.faults.size > 0) return refused([...reader.faults]);
  if (isNever(root)) return refused(['no arguments fit it']);
  const { fields, standsFor } = target(root);
  const isWrapped = fields === undefined || standsFor !== undefined;
  const { recursive, ...written } = writeStrictSchema(root, isWrapped ? WRAPPER : undefined);
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

/** Values that are nested too deep stay as they are; the validation reports them. */
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
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}

/** The size of a list of constants is limited if it has more than this many. */
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

/** The levels of objects and lists. Recursive definitions have no end: each is counted for itself. */
function levelsOf(root: JsonSchema, recursive: WrittenSchema['recursive']): number {
  const { $defs = {}, ...whole } = root;
  const known = new Map<JsonSchema, number>();
  const levels = (schema: JsonSchema): number => {
    const found = known.get(schema);
    if (found !== undefined) return found;
    const { $ref = '' } = schema;
    const definition = recursive.has($ref) ? undefined : $defs[$ref.replace('#/$defs/', '')];
    const below = definition === undefined ? subschemas(schema) : [definition];
    const isLevel = schema.type === 'object' || schema.type === 'array';
    const count = Math.max(0, ...below.map(levels)) + (isLevel ? 1 : 0);
    known.set(schema, count);
    return count;
  };
  const endless = Object.keys($defs).filter((name) => recursive.has(`#/$defs/${name}`));
  return Math.max(levels(whole), ...endless.map((name) => levels($defs[name] ?? {})));
}
