import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { describeErrors } from './describe-errors.js';
import { compileSchema } from './json-schema-compiler.js';

/** What is wrong with a tool's result, seen as JSON; nothing where it keeps its word. */
export type ResultChecker = (result: unknown) => readonly ArgumentFault[];

/**
 * Checks results against the schema that a tool declared for them. The schema speaks of JSON, so that a
 * `Date` counts as its text.
 *
 * @throws Error when the schema itself is not valid.
 */
export function createResultChecker(schema: JsonSchema): ResultChecker {
  const validate = compileSchema(schema);
  return (result) => {
    const json = toJson(result);
    if (!json.ok) return [{ path: '', message: 'cannot be written as JSON' }];
    const errors = validate(json.value);
    return errors === undefined ? [] : describeErrors(errors, schema);
  };
}

/** As the model gets it: big integers are written as their digits, which is text. */
function toJson(value: unknown): { readonly ok: true; readonly value: unknown } | { readonly ok: false } {
  try {
    const text: string | undefined = JSON.stringify(value, (_key, field) =>
      typeof field === 'bigint' ? field.toString() : field,
    );
    return { ok: true, value: text === undefined ? undefined : JSON.parse(text) };
  } catch {
    return { ok: false };
  }
}
