import type { JsonObject, JsonSchema } from 'toolwright';
import { createChecker } from '../../../src/checking/checker.js';
import { describeFaults } from '../../../src/checking/faults.js';

/** What the model is told of arguments that do not fit, line by line; empty where they fit. */
export function toldFaults(schema: JsonSchema, args: unknown, refuseExtra = false): readonly string[] {
  const checked = createChecker(schema, { refuseExtra })(args as JsonObject);
  return checked.ok ? [] : describeFaults('search', checked.faults).split('\n');
}
