import type { Ajv, CodeKeywordDefinition, KeywordCxt, Options, ValidateFunction } from 'ajv';
import type { DataValidateFunction } from 'ajv/dist/types/index.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { allSchemas, type Draft, subschemas } from '../schema/keywords.js';
import { jsonFormats, patternOf } from './formats.js';
import { interpretSchema } from './interpreter/interpret-schema.js';
import { MAX_ERRORS, type SchemaError } from './interpreter/judge.js';
import { duplicateItems } from './interpreter/value-keywords.js';
import { loadAjv, newAjv } from './load-ajv.cjs';
import { draftOf } from './schema-faults.js';
import { unionChooser } from './schema-level.js';

/** A compiled schema: `undefined` when the value fits, otherwise everything that does not. */
type CompiledSchema = (value: unknown) => readonly SchemaError[] | undefined;

/** Whether a value fits a schema, without saying why not. */
export type SchemaTest = (value: unknown) => boolean;

const COMMON: Options = {
  // Authors' schemas may carry keywords of other tools; unknown ones are theirs, not errors.
  strict: false,
  // JSON has no other numbers, whatever a reader of JSON makes of `1e999`.
  strictNumbers: true,
  logger: false,
  // Done by `schemaFault`: compiling the meta-schema takes longer than all else.
  validateSchema: false,
  meta: false,
  code: { regExp: Object.assign(patternOf, { code: 'new RegExp' }) },
};

/**
 * `telling` says everything that is wrong; a key such as `toString` counts only if it was sent. `testing` says
 * only whether; looking at own keys alone would cost three times as much. `wide` does that for schemas for
 * which the validator would otherwise nest a block of code in another for each property.
 */
const PURPOSES = {
  telling: {
    ...COMMON,
    code: { ...COMMON.code, process: boundErrors },
    verbose: true,
    ownProperties: true,
    allErrors: true,
  },
  testing: COMMON,
  wide: { ...COMMON, allErrors: true },
} satisfies Record<string, Options>;

type Purpose = keyof typeof PURPOSES;

/** From here on, nested blocks cost more than they save. */
const WIDE = 200;

const validators = new Map<string, Ajv>();

/**
 * Generates code for a schema of draft 7, 2019-09 or 2020-12, formats included. The validator is loaded with the first
 * schema: it takes 40 ms that a process without many tool calls need not spend.
 */
export function compileSchema(schema: JsonSchema): CompiledSchema {
  const validate = compile(schema, 'telling');
  return (value) => (validate(value) === true ? undefined : (validate.errors as SchemaError[]));
}

/**
 * Compiles a schema for a plain yes or no, which is cheaper. Not for schemas that name a property of
 * `Object.prototype`: inherited ones would count as sent.
 */
export function compileTest(schema: JsonSchema): SchemaTest {
  const isWide = [...allSchemas(schema)].some((part) => subschemas(part).length > WIDE);
  return compile(schema, isWide ? 'wide' : 'testing') as SchemaTest;
}

function compile(schema: JsonSchema, purpose: Purpose): ValidateFunction {
  const validator = validatorFor(draftOf(schema), purpose);
  // The validator would remember the id, and take the next schema of the same for this one.
  const { $id: _, ...anonymous } = schema;
  try {
    return validator.compile(anonymous);
  } finally {
    // The validator would keep every schema for ever, also those that are made anew for each call.
    validator.removeSchema(anonymous);
  }
}

function validatorFor(draft: Draft, purpose: Purpose): Ajv {
  const key = `${draft} ${purpose}`;
  const known = validators.get(key);
  if (known !== undefined) return known;
  const made = makeValidator(draft, PURPOSES[purpose]);
  validators.set(key, made);
  return made;
}

function makeValidator(draft: Draft, options: Options): Ajv {
  const validator = newAjv(draft, options);
  // Of draft 4, and refused in later ones: a schema that says it means no harm.
  validator.removeKeyword('id');
  validator.removeKeyword('uniqueItems');
  validator.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: true,
    validate: uniqueItems,
  });
  for (const keyword of ['anyOf', 'oneOf']) {
    validator.removeKeyword(keyword);
    validator.addKeyword(tellingUnion(keyword, loadAjv()));
  }
  for (const [name, format] of Object.entries(jsonFormats())) validator.addFormat(name, format);
  return validator;
}

/** The package of the validator: what is written here is in its terms. */
type AjvPackage = typeof import('ajv');

/**
 * Code that makes no more errors than are told apart, and then repeats the last one so that they count; and that
 * does not copy all errors so far behind each reference. An error holds its whole path and what lies around it.
 */
function boundErrors(code: string): string {
  return code
    .replace(
      /(const err\d+ = )\{instancePath/g,
      `$1vErrors !== null && vErrors.length >= ${MAX_ERRORS} ? vErrors[${MAX_ERRORS - 1}] : {instancePath`,
    )
    .replace(/vErrors\.concat\(([\w.]+\.errors)\)/g, '($1.forEach((error) => vErrors.push(error)), vErrors)');
}

/**
 * `anyOf` or `oneOf`, in time that does not double with each union within another. Where the value shows which branch it was meant for, no other can accept it, and that
 * branch alone is asked; otherwise all of them are, and what they say against it is not kept.
 */
function tellingUnion(keyword: string, { _, Name }: AjvPackage): CodeKeywordDefinition {
  return {
    keyword,
    schemaType: 'array',
    trackErrors: true,
    error: { message: `must match a schema in ${keyword}` },
    code(cxt: KeywordCxt) {
      const { gen, data, it } = cxt;
      const branches = cxt.schema as readonly JsonSchema[];
      const ref = indexOf(branches, it.schemaEnv.root.schema as JsonSchema);
      const chosen = gen.const('chosen', _`${gen.scopeValue('func', { ref })}(${data})`);
      const fits = gen.name('_valid');
      const ask = (schemaProp: number, quiet: object): void => {
        const asked = cxt.subschema({ keyword, schemaProp, ...quiet }, fits);
        gen.if(fits, () => void cxt.mergeEvaluated(asked, Name));
      };
      branches.forEach((_branch, index) => {
        gen.if(_`${chosen} === ${index}`, () => ask(index, {}));
      });
      gen.if(_`${chosen} < 0`, () => {
        const fitting = gen.let('fitting', 0);
        gen.if(_`${chosen} === ${UNCLEAR}`, () =>
          branches.forEach((_branch, index) => {
            ask(index, QUIET);
            gen.if(fits, () => gen.code(_`${fitting}++`));
          }),
        );
        cxt.reset();
        const isEnough = keyword === 'oneOf' ? _`${fitting} !== 1` : _`${fitting} === 0`;
        gen.if(isEnough, () => cxt.error(true));
      });
    },
  };
}

/** What a chooser found instead of a branch: none accepts the value, or it takes all of them to tell. */
const NONE = -1;
const UNCLEAR = -2;

const QUIET = { createErrors: false, allErrors: false, compositeRule: true };

function indexOf(branches: readonly JsonSchema[], root: JsonSchema): (value: unknown) => number {
  const choose = unionChooser(branches, root);
  return (value) => {
    const chosen = choose(value);
    if (chosen.kind === 'branch') return chosen.index;
    return chosen.kind === 'tag' && chosen.isCertain ? NONE : UNCLEAR;
  };
}

/** Code is generated for schemas that are asked more often; until then that takes longer than it saves. */
const MOST_INTERPRETED = 500;

/**
 * Says of a value everything that does not fit a sound schema of draft 7, 2019-09 or 2020-12, formats included;
 * `undefined` where it fits.
 */
export function schemaCheck(schema: JsonSchema): CompiledSchema {
  const { check, isBetterInterpreted } = interpretSchema(schema);
  if (isBetterInterpreted) return check;
  const improving = improvingWith(check, () => compileSchema(schema));
  return (value) => improving.ask(value);
}

/** Says whether a value fits a sound schema, which is cheaper. */
export function schemaTest(schema: JsonSchema): SchemaTest {
  const improving = improvingTest(schema);
  return (value) => improving.ask(value);
}

/** The same for those who ask at every call. */
export function improvingTest(schema: JsonSchema): Improving<boolean> {
  const { test, isBetterInterpreted } = interpretSchema(schema);
  return isBetterInterpreted ? { ask: test } : improvingWith(test, () => compileTest(schema));
}

/** What is asked about values; another function takes its place once it has been asked often. */
interface Improving<Verdict> {
  ask: (value: unknown) => Verdict;
}

/** Asks the interpreter, and from some number of calls on the code that is generated for the schema. */
function improvingWith<Verdict>(
  interpreter: Improving<Verdict>['ask'],
  compile: () => Improving<Verdict>['ask'],
): Improving<Verdict> {
  let calls = 0;
  const improving: Improving<Verdict> = {
    ask(value) {
      calls += 1;
      if (calls > MOST_INTERPRETED) improving.ask = compiled(compile) ?? interpreter;
      return interpreter(value);
    },
  };
  return improving;
}

/** The code, where it may be generated and is as good as the interpreter. */
function compiled<Ask>(compile: () => Ask): Ask | undefined {
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

/**
 * The keyword `uniqueItems`, in time that grows with the list; the validator's own way compares each item with
 * each other one.
 */
const uniqueItems: UniqueItems = (isWanted, items, parentSchema) => {
  const twice = isWanted ? duplicateItems(items) : undefined;
  if (twice === undefined) return true;
  uniqueItems.errors = [{ keyword: 'uniqueItems', ...twice, parentSchema }];
  return false;
};

type UniqueItems = Pick<DataValidateFunction, 'errors'> &
  ((isWanted: boolean, items: readonly unknown[], parentSchema?: object) => boolean);
