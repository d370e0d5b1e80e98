import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { closedSchema } from './closed-schema.js';
import { describeErrors, type ValueFault } from './describe-errors.js';
import { createFiller, type DefaultsOf, fittingDefaults, NO_DEFAULTS } from './fill-defaults.js';
import type { CompiledSchema, SchemaTest } from './json-schema-compiler.js';
import { schemaCheck, schemaTest } from './schema-check.js';
import type { SchemaError } from './schema-error.js';
import { refuseMalformed } from './schema-faults.js';
import { createTidier, type Tidier, type TidyOptions } from './tidy-arguments.js';
import { boundFaults, boundsTest } from './value-bounds.js';

/** Arguments that fit the schema, with what was changed about them; or everything that is wrong. */
export type Checked =
  | {
      readonly ok: true;
      readonly value: JsonObject;
      readonly removed: readonly string[];
      readonly coerced: readonly string[];
      /** Paths of optional properties whose `null` was taken for absence; absent where there are none. */
      readonly dropped?: readonly string[];
    }
  | {
      readonly ok: false;
      readonly faults: readonly ValueFault[];
      readonly removed: readonly string[];
      /** The arguments as far as they could be mended. */
      readonly value?: JsonObject;
    };

/** Checks arguments against one schema. Never changes its input. */
export type Checker = (args: JsonObject) => Checked;

/** How strict a checker is. */
export interface CheckerOptions {
  /** Unknown keys are faults instead of being removed: for tools that destroy. */
  readonly refuseExtra?: boolean;
  /** What does not fit as it was sent is a fault: no types are mended and no `null` is dropped. */
  readonly asSent?: boolean;
  /** `false`: nothing is filled in for what was left out; the tool knows its defaults itself. */
  readonly fillDefaults?: boolean;
}

const NONE: readonly string[] = [];

/**
 * The checker of a schema: the very schema that the model is offered, compiled on first use. Arguments that
 * need nothing cost one pass of a stricter form of it. Otherwise plain validation comes first, and only
 * what fails it is mended, on a copy, and validated again.
 *
 * @throws Error when the schema itself is not valid.
 */
export function createChecker(schema: JsonSchema, options: CheckerOptions = {}): Checker {
  refuseMalformed(schema);
  const defaultsOf = options.fillDefaults === false ? NO_DEFAULTS : fittingDefaults(schema);
  const closed = closedSchema(schema, (part) => defaultsOf(part).map(([name]) => name));
  if (closed === undefined) return boundedChecker(thoroughChecker(schema, { ...options, defaultsOf }));
  const fits = schemaTest(closed);
  const fill = createFiller(defaultsOf(schema));
  const isWithinBounds = boundsTest(closed);
  const tidy = createTidier(schema, defaultsOf);
  let thorough: Checker | undefined;
  const checkUnfit = boundedChecker((args) => {
    const trimmed = options.asSent ? undefined : trim(args, { fits, tidy, refuseExtra: options.refuseExtra });
    if (trimmed !== undefined) return trimmed;
    thorough ??= thoroughChecker(schema, { ...options, defaultsOf });
    return thorough(args);
  });
  return (args) =>
    isWithinBounds(args) && fits(args)
      ? { ok: true, value: fill(args), removed: NONE, coerced: NONE }
      : checkUnfit(args);
}

interface TrimOptions extends Pick<CheckerOptions, 'refuseExtra'> {
  readonly fits: SchemaTest;
  readonly tidy: Tidier;
}

/** Arguments with which nothing is wrong but keys that nobody knows, which needs no errors to be seen. */
function trim(args: JsonObject, { fits, tidy, refuseExtra }: TrimOptions): Checked | undefined {
  const notes = noNotes();
  const value = tidy(args, { mend: false, extra: 'unnamed' }, notes);
  const isMeant = refuseExtra ? notes.removed.length === 0 : notes.misspelt.length === 0;
  return value !== args && isMeant && fits(value) ? { ok: true, value, ...changes(notes) } : undefined;
}

function boundedChecker(check: Checker): Checker {
  return (args) => {
    const faults = boundFaults(args);
    return faults.length > 0 ? { ok: false, faults, removed: NONE } : check(args);
  };
}

interface ThoroughOptions extends CheckerOptions {
  readonly defaultsOf: DefaultsOf;
}

function thoroughChecker(
  schema: JsonSchema,
  { refuseExtra = false, asSent = false, defaultsOf }: ThoroughOptions,
): Checker {
  const validate: CompiledSchema = schemaCheck(schema);
  const tidy = createTidier(schema, defaultsOf);
  const tidied = (args: JsonObject, how: TidyOptions): Tidied => {
    const notes = noNotes();
    const value = tidy(args, how, notes);
    return { value, notes, errors: value === args && !how.mend ? undefined : validate(value) };
  };
  return (args) => {
    const errors = validate(args);
    if (errors !== undefined && asSent)
      return { ok: false, faults: describeErrors(errors, schema), removed: NONE };
    const fitting = errors === undefined ? tidied(args, { mend: false, extra: 'unnamed' }) : undefined;
    const isFitting = fitting !== undefined && (!refuseExtra || fitting.notes.removed.length === 0);
    // What fits only as it was sent stays so.
    if (isFitting && fitting.errors !== undefined)
      return { ok: true, value: args, removed: NONE, coerced: NONE };
    const outcome = isFitting ? fitting : mended((how) => tidied(args, how));
    const { value, notes } = outcome;
    const extra = refuseExtra ? notes.removed.map(refuse) : notes.misspelt.map(unknown);
    if (outcome.errors === undefined && extra.length === 0) return { ok: true, value, ...changes(notes) };
    const faults = unwrapped(describeErrors(outcome.errors ?? [], schema), notes.wrapped);
    return { ok: false, faults: [...faults, ...extra], removed: notes.removed, value };
  };
}

/** Arguments after tidying, and what is wrong with them then. */
interface Tidied {
  readonly value: JsonObject;
  readonly notes: ReturnType<typeof noNotes>;
  readonly errors: readonly SchemaError[] | undefined;
}

/** Keys that no schema names go. Should that not do, those that the meant branch does not know; or else none. */
function mended(tidied: (how: TidyOptions) => Tidied): Tidied {
  const first = tidied({ mend: true, extra: 'unnamed' });
  if (first.errors === undefined) return first;
  const others: TidyOptions['extra'][] = [];
  if (first.notes.spared.length > 0) others.push('unknown');
  if (first.notes.removed.length > 0) others.push('none');
  for (const extra of others) {
    const other = tidied({ mend: true, extra });
    if (other.errors === undefined) return other;
  }
  return first;
}

function changes({ removed, coerced, dropped }: ReturnType<typeof noNotes>) {
  return { removed, coerced, ...(dropped.length > 0 ? { dropped } : {}) };
}

function noNotes() {
  return {
    removed: [] as string[],
    misspelt: [] as string[],
    spared: [] as string[],
    coerced: [] as string[],
    wrapped: [] as string[],
    dropped: [] as string[],
  };
}

/**
 * Faults describe what was sent: where one value was taken for a list and did not fit, there was no list, and
 * so no element 0.
 */
function unwrapped(faults: readonly ValueFault[], wrapped: readonly string[]): readonly ValueFault[] {
  const open = new Set(wrapped);
  if (open.size === 0) return faults;
  const elements = new Set(wrapped.map((path) => `${path}.0`));
  return faults.flatMap((fault) => {
    const lists = listsAround(fault.path, open);
    for (const { path } of lists) open.delete(path);
    return elements.has(fault.path) ? lists : [...lists, fault];
  });
}

function listsAround(path: string, wrapped: ReadonlySet<string>): readonly ValueFault[] {
  const lists: ValueFault[] = [];
  for (let at = path.indexOf('.0'); at >= 0; at = path.indexOf('.0', at + 1)) {
    const isStep = at + 2 === path.length || path[at + 2] === '.';
    const list = isStep ? path.slice(0, at) : undefined;
    if (list !== undefined && wrapped.has(list)) lists.push({ path: list, message: 'must be array' });
  }
  return lists;
}

function unknown(path: string): ValueFault {
  return { path, message: 'is not a known property' };
}

function refuse(path: string): ValueFault {
  return { path, message: 'is not a known property, and this tool takes no others' };
}
