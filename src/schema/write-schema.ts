import type { ClassType } from '../contract/class-type.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { classModel } from './class-model.js';
import { Definitions } from './definitions.js';
import { surveyTypes, type TypeSurvey } from './survey-types.js';
import type { PropertyFault } from './type-result.js';
import type { PropertyModel } from './value-type.js';
import { writeObject } from './write-object.js';

/** A schema, or everything that keeps it from being written. */
export type WriteSchemaResult =
  | { readonly ok: true; readonly schema: JsonSchema }
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

function write(properties: readonly PropertyModel[], survey: TypeSurvey): WriteSchemaResult {
  if (survey.faults.length > 0) return { ok: false, faults: survey.faults };
  const definitions = new Definitions();
  const schema = writeObject(properties, { survey, definitions });
  return { ok: true, schema: definitions.attachTo(schema) };
}
