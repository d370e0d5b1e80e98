import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { JsonSchema } from 'toolwright';
import { formatTest } from '../../../src/tools/checking/formats.js';

// One for all schemas: each compiles the schema of schemas for itself, which takes longer than most that it validates.
const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, ownProperties: true });
addFormats.default(ajv);
// class-validator accepts wider addresses than ajv-formats.
const isEmail = formatTest('email', 'string');
if (isEmail !== undefined) ajv.addFormat('email', isEmail);

/** An independent validator of the schemas: ajv with its formats, in its strict mode as far as types go. */
export function compileSchema(schema: JsonSchema): (value: unknown) => boolean {
  const validate = ajv.compile(schema);
  return (value) => validate(value);
}
