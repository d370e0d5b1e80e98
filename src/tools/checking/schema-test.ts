import type { JsonSchema } from '../../core/contract/json-schema.js';
import { interpretSchema } from './interpreter/interpret-schema.js';
import type { SchemaError } from './interpreter/validator.js';

/** Whether a value matches a schema, without the errors. */
export type SchemaTest = (value: unknown) => boolean;

/** A test that is replaced by generated code after many uses. */
interface ImprovingTest {
  ask: SchemaTest;
}

/** Code is generated for schemas that are used more often; for others it would take longer than it saves. */
const MAX_INTERPRETED = 50;

/**
 * All errors of a value for a valid schema of draft 7, 2019-09 or 2020-12, including formats; `undefined` if it
 * matches.
 */
export function schemaCheck(schema: JsonSchema): (value: unknown) => readonly SchemaError[] | undefined {
  return interpretSchema(schema).check;
}

/** Whether a value matches a valid schema; cheaper than the errors. */
export function schemaTest(schema: JsonSchema): SchemaTest {
  const improving = improvingTest(schema);
  return (value) => improving.ask(value);
}

/** The same for frequent use: interpreted first, later as generated code. */
export function improvingTest(schema: JsonSchema): ImprovingTest {
  const { test, generate } = interpretSchema(schema);
  if (generate === undefined) return { ask: test };
  let calls = 0;
  const improving: ImprovingTest = {
    ask(value) {
      calls += 1;
      if (calls > MAX_INTERPRETED) improving.ask = mayGenerateCode() ? generate() : test;
      return test(value);
    },
  };
  return improving;
}

let known: boolean | undefined;

/**
 * Whether this process may generate code: not under `--disallow-code-generation-from-strings`, nor in workers and
 * pages whose policy forbids it. The restriction is reported once.
 */
export function mayGenerateCode(): boolean {
  known ??= findOut();
  return known;
}

function findOut(): boolean {
  try {
    return new Function('return true')() === true;
  } catch {
    const message =
      'Code must not be generated here, so that JSON schemas are interpreted: with the same verdicts, in more time for each call.';
    process.emitWarning(message, { type: 'ToolwrightWarning', code: 'TOOLWRIGHT_INTERPRETED' });
    return false;
  }
}
