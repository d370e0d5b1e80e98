import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { JsonSchema } from 'toolwright';
import { formatTest } from '../../../src/tools/checking/formats.js';

// Shared by all schemas, because each instance compiles the meta-schema, which is slow.
const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, ownProperties: true });
addFormats.default(ajv);
// class-validator accepts more mail addresses than ajv-formats.
const isEmail = formatTest('email', 'string');
if (isEmail !== undefined) ajv.addFormat('email', isEmail);

/** An independent validator for the schemas: ajv with its formats, strict except for types. */
export function compileSchema(schema: JsonSchema): (value: unknown) => boolean {
  const validate = ajv.compile(schema);
  return (value) => validate(value);
}
