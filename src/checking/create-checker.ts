import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { describeErrors } from './describe-errors.js';
import { compileSchema } from './json-schema-compiler.js';
import { createTidier } from './tidy-arguments.js';

/** Arguments that fit the schema, with what was changed about them; or everything that is wrong. */
export type Checked =
  | {
      readonly ok: true;
      readonly value: JsonObject;
      readonly removed: readonly string[];
      readonly coerced: readonly string[];
    }
  | { readonly ok: false; readonly faults: readonly ArgumentFault[]; readonly removed: readonly string[] };

/** Checks arguments against one schema. Never changes its input. */
export type Checker = (args: JsonObject) => Checked;

/** How strict a checker is. */
export interface CheckerOptions {
  /** Unknown keys are faults instead of being removed: for tools that destroy (design §4). */
  readonly refuseExtra?: boolean;
}

const NONE: readonly string[] = [];

/**
 * The checker of a schema: the very schema that the model is offered, compiled on first use. Plain
 * validation comes first; only what fails it is mended, on a copy, and validated again.
 *
 * @throws Error when the schema itself is not valid.
 */
export function createChecker(schema: JsonSchema, { refuseExtra = false }: CheckerOptions = {}): Checker {
  const validate = compileSchema(schema);
  const tidy = createTidier(schema);
  return (args) => {
    const notes = { removed: [] as string[], coerced: [] as string[] };
    if (refuseExtra) tidy(args, { mend: false, keepExtra: false }, notes);
    const errors = validate(args);
    if (errors === undefined && notes.removed.length === 0) {
      const value = tidy(args, { mend: false, keepExtra: refuseExtra }, notes);
      return { ok: true, value, removed: notes.removed, coerced: NONE };
    }
    const extra = refuseExtra ? notes.removed.map(refuse) : [];
    const mended = tidy(args, { mend: true, keepExtra: refuseExtra }, notes);
    const remaining = validate(mended);
    if (remaining === undefined && extra.length === 0) {
      return { ok: true, value: mended, removed: notes.removed, coerced: notes.coerced };
    }
    return {
      ok: false,
      faults: [...describeErrors(remaining ?? [], schema), ...extra],
      removed: refuseExtra ? NONE : notes.removed,
    };
  };
}

function refuse(path: string): ArgumentFault {
  return { path, message: 'is not a known property, and this tool takes no others' };
}
