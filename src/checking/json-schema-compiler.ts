import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, Options, ValidateFunction } from 'ajv';
import type { JsonSchema } from '../contract/json-schema.js';
import { TEXT_FORMATS } from '../schema/text-formats.js';
import { type Draft, schemaFault } from './schema-fault.js';

/** A compiled schema: `undefined` when the value fits, otherwise everything that does not. */
export type CompiledSchema = (value: unknown) => readonly SchemaError[] | undefined;

/** One disagreement, in the validator's terms. `verbose` adds the value and the schema around it. */
export type SchemaError = ErrorObject<string, Record<string, unknown>, unknown>;

const require = createRequire(import.meta.url);

/** Whether a value fits a schema, without saying why not. */
export type SchemaTest = (value: unknown) => boolean;

const COMMON: Options = {
  // Authors' schemas may carry keywords of other tools; unknown ones are theirs, not errors.
  strict: false,
  logger: false,
  // Two tools may bring schemas of the same `$id`.
  addUsedSchema: false,
  // Done by `schemaFault`: compiling the meta-schema takes longer than all else.
  validateSchema: false,
  code: { regExp: Object.assign(tolerantRegExp, { code: 'new RegExp' }) },
};

/** Says everything that is wrong; a key such as `toString` counts only if it was sent. */
const TELLING: Options = { ...COMMON, allErrors: true, verbose: true, ownProperties: true };

/** Says only whether. Looking at own keys alone would cost three times as much. */
const TESTING: Options = COMMON;

const validators = new Map<string, Ajv>();

/**
 * Compiles a schema of draft 7 or 2020-12, formats included. The validator is loaded with the first
 * schema: it takes 40 ms that a process without tool calls need not spend.
 *
 * @throws Error when the schema itself is not valid.
 */
export function compileSchema(schema: JsonSchema): CompiledSchema {
  const validate = compile(schema, 'telling');
  return (value) => (validate(value) ? undefined : (validate.errors as SchemaError[]));
}

/**
 * Compiles a schema for a plain yes or no, which is cheaper. Not for schemas that name a property of
 * `Object.prototype`: inherited ones would count as sent.
 */
export function compileTest(schema: JsonSchema): SchemaTest {
  return compile(schema, 'testing');
}

function compile(schema: JsonSchema, purpose: 'telling' | 'testing'): ValidateFunction {
  const draft = isDraft7(schema) ? '7' : '2020-12';
  const fault = schemaFault(schema, draft);
  if (fault !== undefined) throw new TypeError(`schema is invalid: ${fault}`);
  const validator = validatorFor(draft, purpose);
  const validate = validator.compile(schema);
  // The validator would keep every schema for ever, also those that are made anew for each call.
  validator.removeSchema(schema);
  return validate;
}

function validatorFor(draft: Draft, purpose: 'telling' | 'testing'): Ajv {
  const key = `${draft} ${purpose}`;
  const known = validators.get(key);
  if (known !== undefined) return known;
  const made = withFormats(create(draft, purpose === 'telling' ? TELLING : TESTING));
  validators.set(key, made);
  return made;
}

function create(draft: Draft, options: Options): Ajv {
  if (draft === '7') {
    const { Ajv } = require('ajv') as typeof import('ajv');
    return new Ajv(options);
  }
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
  return new Ajv2020(options);
}

function withFormats(validator: Ajv): Ajv {
  const { default: addFormats } = require('ajv-formats') as { default: (ajv: Ajv) => Ajv };
  addFormats(validator);
  for (const [name, pattern] of Object.entries(TEXT_FORMATS)) validator.addFormat(name, pattern);
  return validator;
}

/** Draft 7 says so, or writes tuples as `items: [...]`, which 2020-12 no longer knows. */
function isDraft7(schema: JsonSchema): boolean {
  return /draft-0[4-7]|draft\/2019-09/.test(String(schema.$schema)) || hasTupleItems(schema);
}

function hasTupleItems(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false;
  if ('items' in node && Array.isArray(node.items)) return true;
  return Object.values(node).some(hasTupleItems);
}

/** Patterns are Unicode by specification; those that older tools wrote may not parse as such. */
function tolerantRegExp(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern, flags.replace('u', ''));
  }
}
