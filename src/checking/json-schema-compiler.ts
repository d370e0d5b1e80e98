import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, Options, ValidateFunction } from 'ajv';
import type { JsonSchema } from '../contract/json-schema.js';
import { TEXT_FORMATS } from '../schema/text-formats.js';

/** A compiled schema: `undefined` when the value fits, otherwise everything that does not. */
export type CompiledSchema = (value: unknown) => readonly SchemaError[] | undefined;

/** One disagreement, in the validator's terms. `verbose` adds the value and the schema around it. */
export type SchemaError = ErrorObject<string, Record<string, unknown>, unknown>;

const require = createRequire(import.meta.url);

const OPTIONS: Options = {
  allErrors: true,
  // A key such as `toString` counts only if it was sent (design, invariant 4).
  ownProperties: true,
  verbose: true,
  // Authors' schemas may carry keywords of other tools; unknown ones are theirs, not errors.
  strict: false,
  logger: false,
  // Two tools may bring schemas of the same `$id`.
  addUsedSchema: false,
  code: { regExp: Object.assign(tolerantRegExp, { code: 'new RegExp' }) },
};

let draft7: Ajv | undefined;
let draft2020: Ajv | undefined;

/**
 * Compiles a schema of draft 7 or 2020-12, formats included. The validator is loaded with the first
 * schema: it takes 40 ms that a process without tool calls need not spend.
 *
 * @throws Error when the schema itself is not valid.
 */
export function compileSchema(schema: JsonSchema): CompiledSchema {
  const validator = validatorFor(schema);
  const known = withKnownDraft(schema, validator);
  const validate: ValidateFunction = validator.compile(known);
  // The validator would keep every schema for ever, also those that are made anew for each call.
  validator.removeSchema(known);
  return (value) => (validate(value) ? undefined : (validate.errors as SchemaError[]));
}

function validatorFor(schema: JsonSchema): Ajv {
  if (isDraft7(schema)) {
    if (draft7 === undefined) {
      const { Ajv } = require('ajv') as typeof import('ajv');
      draft7 = withFormats(new Ajv(OPTIONS));
    }
    return draft7;
  }
  if (draft2020 === undefined) {
    const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
    draft2020 = withFormats(new Ajv2020(OPTIONS));
  }
  return draft2020;
}

function withFormats(validator: Ajv): Ajv {
  const { default: addFormats } = require('ajv-formats') as { default: (ajv: Ajv) => Ajv };
  addFormats(validator);
  for (const [name, pattern] of Object.entries(TEXT_FORMATS)) validator.addFormat(name, pattern);
  return validator;
}

/** Without a `$schema` that the validator does not know: it would refuse to compile 2019-09, draft 6, … */
function withKnownDraft(schema: JsonSchema, validator: Ajv): JsonSchema {
  const { $schema } = schema;
  if (typeof $schema !== 'string' || validator.getSchema($schema) !== undefined) return schema;
  return { ...schema, $schema: undefined };
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
