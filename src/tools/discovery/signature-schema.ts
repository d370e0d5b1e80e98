import type { JsonSchema } from '../../core/contract/json-schema.js';
import { authorSchemaFaults, describeSchemaFault } from '../checking/given-schema.js';
import { createHydrator } from '../checking/hydration/create-hydrator.js';
import type { SchemaFault } from '../checking/schema-faults.js';
import { type ArgumentsModel, arePlain } from '../schema/value-type.js';
import { writeParameters } from '../schema/write-schema.js';
import type { ParameterFault } from './bind-parameters.js';
import type { BuiltSchema } from './tool-schemas.js';

/** The schema of a signature: its parameters, a DTO class, or a generated type. */
export function fromSignature(model: ArgumentsModel, faults: ParameterFault[]): BuiltSchema | undefined {
  const written = writeParameters(model);
  if (!written.ok) {
    faults.push(...written.faults);
    return undefined;
  }
  const { schema, accepted, disagreements } = written;
  const isObject = !('type' in model);
  if ('properties' in model && arePlain(model.properties)) return { schema, isObject, writer: 'framework' };
  if (isObject)
    faults.push(...authorSchemaFaults(schema, declaredDefaults(model, schema)).map(faultOfParameter));
  return { schema, isObject, disagreements, hydrate: createHydrator(model, accepted), writer: 'author' };
}

/**
 * The parameters whose default the author declared, by `@Param`, a literal or the generated file. Defaults inside a
 * class may only be documentation, and those inside a schema belong to that schema.
 */
function declaredDefaults(
  model: Exclude<ArgumentsModel, { readonly type: unknown }>,
  { properties = {} }: JsonSchema,
): readonly JsonSchema[] {
  if ('class' in model) return [];
  const withDefault = model.properties.filter(({ keywords }) => keywords.default !== undefined);
  const names = new Set(withDefault.map(({ name }) => name));
  return Object.entries(properties).flatMap(([name, schema]) => (names.has(name) ? [schema] : []));
}

/** Assigns a fault of `@Param` or of a class's rules to its parameter. */
function faultOfParameter(fault: SchemaFault): ParameterFault {
  const [, parameter, rest] = /^properties\.([^.]+)\.(.+)$/.exec(fault.path) ?? [];
  if (parameter === undefined) return describeSchemaFault(fault, 'parameters');
  return { parameter, problem: `its \`${rest}\` ${fault.problem}`, fix: fault.fix };
}
