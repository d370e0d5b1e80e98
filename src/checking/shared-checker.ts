import type { JsonSchema } from '../contract/json-schema.js';
import { type Checker, type CheckerOptions, createChecker } from './create-checker.js';

/** Enough for the tools of a large application; beyond that the oldest is compiled again when needed. */
const MAX_CHECKERS = 1000;
const checkers = new Map<string, Checker>();

/**
 * The checker of a schema, the same for equal schemas. Hand-written tools may write theirs anew at each
 * access, and factories at each call; compiling costs some hundred times what comparing does.
 *
 * @throws Error when the schema itself is not valid.
 */
export function sharedChecker(schema: JsonSchema, options: CheckerOptions = {}): Checker {
  const key = `${options.refuseExtra === true} ${options.asSent === true} ${options.fillDefaults !== false} ${JSON.stringify(schema)}`;
  const known = checkers.get(key);
  if (known !== undefined) return known;
  const checker = createChecker(schema, options);
  const [oldest] = checkers.keys();
  if (checkers.size >= MAX_CHECKERS && oldest !== undefined) checkers.delete(oldest);
  checkers.set(key, checker);
  return checker;
}
