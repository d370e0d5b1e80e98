import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { closedSchema } from './closed-schema.js';
import { describeErrors, type ValueFault } from './describe-errors.js';
import { createFiller, type DefaultsOf, fittingDefaults, NO_DEFAULTS } from './fill-defaults.js';
import { type CompiledSchema, compileSchema, compileTest } from './json-schema-compiler.js';
import { createTidier } from './tidy-arguments.js';
import { boundFaults, boundsValues } from './value-bounds.js';

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
  | { readonly ok: false; readonly faults: readonly ValueFault[]; readonly removed: readonly string[] };

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
  const defaultsOf = options.fillDefaults === false ? NO_DEFAULTS : fittingDefaults(schema);
  const closed = closedSchema(schema, (part) => defaultsOf(part).map(([name]) => name));
  if (closed === undefined) return thoroughChecker(schema, { ...options, defaultsOf });
  const fits = compileTest(closed);
  const fill = createFiller(defaultsOf(schema));
  const isBounded = boundsValues(closed);
  let thorough: Checker | undefined;
  return (args) => {
    if ((isBounded || boundFaults(args).length === 0) && fits(args))
      return { ok: true, value: fill(args), removed: NONE, coerced: NONE };
    thorough ??= thoroughChecker(schema, { ...options, defaultsOf });
    return thorough(args);
  };
}

interface ThoroughOptions extends CheckerOptions {
  readonly defaultsOf: DefaultsOf;
}

function thoroughChecker(
  schema: JsonSchema,
  { refuseExtra = false, asSent = false, defaultsOf }: ThoroughOptions,
): Checker {
  const validate: CompiledSchema = compileSchema(schema);
  const tidy = createTidier(schema, defaultsOf);
  return (args) => {
    const unbounded = boundFaults(args);
    if (unbounded.length > 0) return { ok: false, faults: unbounded, removed: NONE };
    const errors = validate(args);
    if (errors === undefined) {
      const notes = noNotes();
      const value = tidy(args, { mend: false }, notes);
      if (!refuseExtra || notes.removed.length === 0)
        return { ok: true, value, removed: notes.removed, coerced: NONE };
    }
    if (asSent && errors !== undefined)
      return { ok: false, faults: describeErrors(errors, schema), removed: NONE };
    const notes = noNotes();
    const mended = tidy(args, { mend: true }, notes);
    const remaining = validate(mended);
    const extra = refuseExtra ? notes.removed.map(refuse) : [];
    if (remaining === undefined && extra.length === 0)
      return {
        ok: true,
        value: mended,
        removed: notes.removed,
        coerced: notes.coerced,
        ...(notes.dropped.length > 0 ? { dropped: notes.dropped } : {}),
      };
    const faults = unwrapped(describeErrors(remaining ?? [], schema), notes.wrapped);
    return { ok: false, faults: [...faults, ...extra], removed: refuseExtra ? NONE : notes.removed };
  };
}

function noNotes() {
  return {
    removed: [] as string[],
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

function refuse(path: string): ValueFault {
  return { path, message: 'is not a known property, and this tool takes no others' };
}
