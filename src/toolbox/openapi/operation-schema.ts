import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { isRecord } from '../../kernel/json.js';
import { deadEnd, lookUp, type Operation, type OperationParameter } from './read-document.js';

/** Which argument of a tool is which part of a request. */
export interface ArgumentPlan {
  readonly parameters: readonly { readonly argument: string; readonly parameter: OperationParameter }[];
  /** The argument that is the body. */
  readonly body?: string;
}

/** What a tool takes, and where it goes. */
export interface OperationSchema {
  readonly schema: JsonSchema;
  readonly plan: ArgumentPlan;
  /** Of references that lead to no schema. */
  readonly faults: readonly AuthorFault[];
}

/**
 * The arguments of an operation: its parameters by their names, and its body as `body`. Two of one name get their
 * places as well: `id` and `header_id`.
 */
export function operationSchema(operation: Operation, document: JsonObject): OperationSchema {
  const taken = new Set<string>();
  const nameOf = (wanted: string, otherwise: string): string => {
    let name = taken.has(wanted) ? otherwise : wanted;
    while (taken.has(name)) name = `${name}_`;
    taken.add(name);
    return name;
  };
  const parameters = operation.parameters.map((parameter) => ({
    parameter,
    argument: nameOf(parameter.name, `${parameter.place}_${parameter.name}`),
  }));
  const definitions = new Definitions(document);
  const properties: Record<string, JsonSchema> = {};
  for (const { parameter, argument } of parameters)
    properties[argument] = described(definitions.convert(parameter.schema), parameter.description);
  const required = parameters.filter(({ parameter }) => parameter.isRequired).map(({ argument }) => argument);
  const { body } = operation;
  const { faults } = definitions;
  if (body === undefined)
    return { schema: schemaOf(properties, required, definitions), plan: { parameters }, faults };
  const argument = nameOf('body', 'request_body');
  properties[argument] = described(definitions.convert(body.schema), body.description);
  if (body.isRequired) required.push(argument);
  return {
    schema: schemaOf(properties, required, definitions),
    plan: { parameters, body: argument },
    faults,
  };
}

function schemaOf(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[],
  { used }: Definitions,
): JsonSchema {
  const $defs = used.size === 0 ? {} : { $defs: Object.fromEntries(used) };
  return { type: 'object', properties, required, ...$defs };
}

/** A description beside a `$ref` would be lost to those who read the dialect of 3.0. */
function described(schema: JsonSchema, description: string | undefined): JsonSchema {
  if (description === undefined || schema.description !== undefined) return schema;
  return schema.$ref === undefined ? { ...schema, description } : { allOf: [schema], description };
}

/** What is said for people and tools, or only of answers; and what is not JSON Schema. */
const LEFT_OUT = new Set([
  'example',
  'examples',
  'xml',
  'externalDocs',
  'discriminator',
  'nullable',
  '$schema',
  '$id',
]);
/** Keywords whose values are maps from any name to a schema. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose values are values, not schemas. */
const VALUES = new Set(['enum', 'const', 'default', 'required', 'type', 'dependentRequired']);

/** The schemas of a document as JSON Schema 2020-12; what they refer to is brought along once. */
class Definitions {
  /** By their names in `$defs`. */
  readonly used = new Map<string, JsonSchema>();
  readonly faults: AuthorFault[] = [];
  readonly #names = new Map<string, string>();

  constructor(readonly document: JsonObject) {}

  convert(schema: unknown): JsonSchema {
    if (schema === false) return { not: {} };
    if (!isRecord(schema)) return {};
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref);
    const converted: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(schema)) {
      if (LEFT_OUT.has(key) || key.startsWith('x-')) continue;
      converted[key] = this.#keyword(key, value);
    }
    withoutReadOnly(converted, schema);
    exclusiveLimits(converted, schema);
    return schema.nullable === true ? orNull(converted) : converted;
  }

  #keyword(key: string, value: unknown): unknown {
    if (VALUES.has(key)) return value;
    if (MAPS.has(key) && isRecord(value))
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, this.convert(part)]));
    if (Array.isArray(value)) return value.map((part) => (isRecord(part) ? this.convert(part) : part));
    return isRecord(value) ? this.convert(value) : value;
  }

  #reference(reference: string): JsonSchema {
    const known = this.#names.get(reference);
    if (known !== undefined) return { $ref: `#/$defs/${known}` };
    const fault = deadEnd(this.document, reference);
    if (fault !== undefined) {
      this.faults.push(fault);
      return {};
    }
    const name = this.#nameOf(reference);
    this.#names.set(reference, name);
    // Its place is taken first: it may refer to itself.
    this.used.set(name, {});
    this.used.set(name, this.convert(lookUp(this.document, reference)));
    return { $ref: `#/$defs/${name}` };
  }

  #nameOf(reference: string): string {
    const last = reference.slice(reference.lastIndexOf('/') + 1).replace(/[^\w-]/g, '_') || 'schema';
    let name = last;
    for (let count = 2; this.used.has(name); count += 1) name = `${last}_${count}`;
    return name;
  }
}

/** What only answers have is not asked for. */
function withoutReadOnly(converted: Record<string, unknown>, { properties, required }: JsonObject): void {
  if (!isRecord(properties) || !isRecord(converted.properties)) return;
  const answered = new Set(
    Object.keys(properties).filter(
      (name) => isRecord(properties[name]) && properties[name].readOnly === true,
    ),
  );
  if (answered.size === 0) return;
  converted.properties = Object.fromEntries(
    Object.entries(converted.properties).filter(([name]) => !answered.has(name)),
  );
  if (Array.isArray(required)) converted.required = required.filter((name) => !answered.has(name));
}

/** In 3.0 a limit is said to be exclusive beside it; since 3.1 the exclusive limit is the number. */
function exclusiveLimits(converted: Record<string, unknown>, schema: JsonObject): void {
  for (const [limit, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof schema[exclusive] !== 'boolean') continue;
    delete converted[exclusive];
    if (schema[exclusive] !== true || typeof schema[limit] !== 'number') continue;
    delete converted[limit];
    converted[exclusive] = schema[limit];
  }
}

function orNull(schema: Record<string, unknown>): JsonSchema {
  if (Array.isArray(schema.enum) && !schema.enum.includes(null)) schema.enum = [...schema.enum, null];
  if (typeof schema.type === 'string') return { ...schema, type: [schema.type, 'null'] };
  return { anyOf: [schema, { type: 'null' }] };
}
