import type { JsonSchema } from '../contract/json-schema.js';
import { interpretSchema } from './interpreter/interpret-schema.js';
import { type CompiledSchema, compileSchema, compileTest, type SchemaTest } from './json-schema-compiler.js';

/** Code is generated for schemas that are asked more often; until then that takes longer than it saves. */
const MOST_INTERPRETED = 500;

/**
 * Says of a value everything that does not fit a sound schema of draft 7, 2019-09 or 2020-12, formats included;
 * `undefined` where it fits.
 */
export function schemaCheck(schema: JsonSchema): CompiledSchema {
  const { check, isBetterInterpreted } = interpretSchema(schema);
  return isBetterInterpreted ? check : improving(check, () => compileSchema(schema));
}

/** Says whether a value fits a sound schema, which is cheaper. */
export function schemaTest(schema: JsonSchema): SchemaTest {
  const { test, isBetterInterpreted } = interpretSchema(schema);
  return isBetterInterpreted ? test : improving(test, () => compileTest(schema));
}

type Ask<Verdict> = (value: unknown) => Verdict;

/** Asks the interpreter, and from some number of calls on the code that is generated for the schema. */
function improving<Verdict>(interpreter: Ask<Verdict>, compile: () => Ask<Verdict>): Ask<Verdict> {
  let calls = 0;
  let code: Ask<Verdict> | undefined;
  return (value) => {
    if (calls <= MOST_INTERPRETED) {
      calls += 1;
      if (calls > MOST_INTERPRETED) code = compiled(compile);
    }
    if (code === undefined) return interpreter(value);
    try {
      return code(value);
    } catch (error) {
      // Some values break it: an object whose `toString` is no function, where objects are compared.
      if (!(error instanceof TypeError)) throw error;
      return interpreter(value);
    }
  };
}

/** The code, where it may be generated and is as good as the interpreter. */
function compiled<Verdict>(compile: () => Ask<Verdict>): Ask<Verdict> | undefined {
  if (!mayGenerateCode()) return undefined;
  try {
    return compile();
  } catch {
    return undefined;
  }
}

let known: boolean | undefined;

/**
 * Whether this process may make code of text: not under `--disallow-code-generation-from-strings`, nor in workers and
 * pages whose policy forbids it. Where it may not, that is said once.
 */
function mayGenerateCode(): boolean {
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
