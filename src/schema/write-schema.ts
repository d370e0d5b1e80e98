import type { ClassType } from '../contract/class-type.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { classModel } from './class-model.js';
import { Definitions } from './definitions.js';
import { surveyTypes, type TypeSurvey } from './survey-types.js';
import type { PropertyFault } from './type-result.js';
import type { PropertyModel, ValueType } from './value-type.js';
import { writeObject } from './write-object.js';

/** A schema, or everything that keeps it from being written. */
export type WriteSchemaResult =
  | { readonly ok: true; readonly schema: JsonSchema; readonly disagreements?: readonly string[] }
  | { readonly ok: false; readonly faults: readonly PropertyFault[] };

/**
 * JSON Schema (2020-12) of an arguments object: `type`, `properties`, `required` (empty if none is) and
 * `$defs` if some class contains itself; nothing else. The same properties give the same bytes.
 */
export function parametersOf(properties: readonly PropertyModel[]): WriteSchemaResult {
  return write(properties, surveyTypes(properties));
}

/** The same for a DTO class that takes all arguments, under class-validator groups if any are given. */
export function classParameters(target: ClassType, groups?: readonly string[]): WriteSchemaResult {
  const read = classModel(target, groups);
  if (!read.ok) return read;
  return write(read.model.properties, surveyTypes(read.model.properties, { model: read.model }));
}

/**
 * The same for a described type that takes all arguments. The root says `type: 'object'` itself: providers
 * look for it there, and not behind a reference or in the branches of a union.
 */
export function typeParameters(type: ValueType): WriteSchemaResult {
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
  const written = parametersOf([property]);
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
