import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { describeErrors } from './describe-errors.js';

import { plainJson } from './plain-json.js';
import { schemaCheck } from './schema-check.js';
import { refuseMalformed } from './schema-faults.js';

/** What is wrong with a tool's result, seen as JSON; nothing where it keeps its word. */
export type ResultChecker = (result: unknown) => readonly ArgumentFault[];

/**
 * Checks results against the schema that a tool declared for them. The schema speaks of JSON, so that a
 * `Date` counts as its text.
 *
 * @throws Error when the schema itself is not valid.
 */
export function createResultChecker(schema: JsonSchema): ResultChecker {
  refuseMalformed(schema);
  const validate = schemaCheck(schema);
  return (result) => {
    const json = plainJson(result);
    if (json === undefined && result !== undefined)
      return [{ path: '', message: 'cannot be written as JSON' }];
    const errors = validate(json);
    return errors === undefined ? [] : describeErrors(errors, schema);
  };
}
