import type { Ajv, Options, ValidateFunction } from 'ajv';
import type { JsonSchema } from '../contract/json-schema.js';
import { allSchemas, type Draft, isSchemaNode, subschemas } from '../schema/keywords.js';
import { draftOf } from './draft-of.js';
import { jsonFormats, patternOf } from './json-formats.js';
import { loadAjv, loadAjv2019, loadAjv2020 } from './load-ajv.cjs';
import type { SchemaError } from './schema-error.js';
import { boundErrors, tellingUnion } from './telling-union.js';
import { uniqueItems } from './unique-items.js';

/** A compiled schema: `undefined` when the value fits, otherwise everything that does not. */
export type CompiledSchema = (value: unknown) => readonly SchemaError[] | undefined;

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

/** The schemas of JSON Schema itself. */
export function metaSchemas(draft: Draft): readonly JsonSchema[] {
  const { schemas } = create(draft, { ...COMMON, meta: true });
  return Object.values(schemas).flatMap((known) => (isSchemaNode(known?.schema) ? [known.schema] : []));
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
  const validator = create(draft, options);
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

function create(draft: Draft, options: Options): Ajv {
  if (draft === '7') {
    const { Ajv } = loadAjv();
    return new Ajv(options);
  }
  if (draft === '2019-09') {
    const { Ajv2019 } = loadAjv2019();
    return new Ajv2019(options);
  }
  const { Ajv2020 } = loadAjv2020();
  return new Ajv2020(options);
}
