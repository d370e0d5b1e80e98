import type { JsonSchema } from '../contract/json-schema.js';
import { classModel } from './class-model.js';
import { Definitions } from './definitions.js';
import { surveyTypes, type TypeSurvey } from './survey-types.js';
import { type PropertyFault } from './type-result.js';
import { type ArgumentsModel, type PropertyModel, type ValueType } from './value-type.js';
import { writeObject } from './write-value.js';

/** A schema, or everything that keeps it from being written. */
type WriteSchemaResult =
  | { readonly ok: true; readonly schema: JsonSchema; readonly disagreements?: readonly string[] }
  | { readonly ok: false; readonly faults: readonly PropertyFault[] };

/**
 * JSON Schema (2020-12) of an arguments object: `type`, `properties`, `required` (empty if none is) and
 * `$defs` if some class contains itself; nothing else. The same model gives the same bytes.
 */
export function writeParameters(model: ArgumentsModel): WriteSchemaResult {
  if ('properties' in model) return write(model.properties, surveyTypes(model.properties));
  if ('type' in model) return writeTypeAsObject(model.type);
  const read = classModel(model.class, model.groups);
  if (!read.ok) return read;
  return write(read.model.properties, surveyTypes(read.model.properties, { model: read.model }));
}

/** The root says `type: 'object'` itself: providers look for it there, not behind a reference or in branches. */
function writeTypeAsObject(type: ValueType): WriteSchemaResult {
  const written = typeSchema(type);
  if (!written.ok) return written;
  const { $ref, $defs, ...schema } = written.schema;
  const name = typeof $ref === 'string' ? $ref.replace(/^#\/\$defs\//, '') : undefined;
  const root = { type: 'object', ...(name === undefined ? {} : $defs?.[name]), ...schema };
  return { ok: true, schema: $defs === undefined ? root : { ...root, $defs } };
}

/** JSON Schema of one type on its own. */
export function typeSchema(type: ValueType): WriteSchemaResult {
  const property = { name: 'value', type, required: true, nullable: false, keywords: {} };
  const written = writeParameters({ properties: [property] });
  if (!written.ok) return written;
  const { properties, $defs } = written.schema;
  return { ok: true, schema: { ...properties?.value, ...($defs === undefined ? {} : { $defs }) } };
}

function write(properties: readonly PropertyModel[], survey: TypeSurvey): WriteSchemaResult {
  if (survey.faults.length > 0) return { ok: false, faults: survey.faults };
  const definitions = new Definitions();
  const schema = writeObject(properties, { survey, definitions });
  const { disagreements } = survey;
  return {
    ok: true,
    schema: definitions.attachTo(schema),
    ...(disagreements.length > 0 ? { disagreements } : {}),
  };
}
