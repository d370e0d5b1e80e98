import { authorSchemaFaults, describeSchemaFault } from '../checking/author-schema.js';
import { createHydrator } from '../checking/hydration/create-hydrator.js';
import { resolveReference } from '../checking/resolve-reference.js';
import { schemaDoubts } from '../checking/schema-doubts.js';
import type { SchemaFault } from '../checking/schema-faults.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { SchemaSource } from '../contract/standard-schema.js';
import type { Hydrate } from '../contract/tool-definition.js';
import type { ToolOptions } from '../contract/tool-options.js';
import { readSchemaSource } from '../schema/schema-source.js';
import type { ValueType } from '../schema/value-type.js';
import { classParameters, parametersOf, typeParameters } from '../schema/write-schema.js';
import type { MethodSignature, ParameterFault } from './describe-method.js';

/** What a tool offers and how its arguments are revived. */
export interface ToolSchemas {
  readonly parameters: JsonSchema;
  readonly output?: JsonSchema;
  readonly hydrate?: Hydrate;
  /** Where types and rules of DTO classes say different things. */
  readonly disagreements?: readonly string[];
  /** What works in the schema of the parameters and is probably not meant. */
  readonly doubts: readonly ParameterFault[];
}

/** The schemas, or what keeps them from being written. */
export type DescribedSchemas =
  | ({ readonly ok: true } & ToolSchemas)
  | { readonly ok: false; readonly faults: readonly ParameterFault[] };

/** The schemas of a tool: an explicit one wins over the signature. */
export function describeSchemas(
  options: Pick<ToolOptions, 'parameters' | 'output'>,
  signature: Omit<MethodSignature, 'bindings'>,
): DescribedSchemas {
  const faults: ParameterFault[] = [];
  const output = options.output ? explicit(options.output, 'output', faults) : undefined;
  const input = options.parameters
    ? objectSchema(explicit(options.parameters, 'parameters', faults), faults)
    : derived(signature, faults);
  if (input === undefined || faults.length > 0) return { ok: false, faults };
  const { schema: parameters, hydrate, disagreements, writer } = input;
  const doubts = schemaDoubts(parameters, writer).map((doubt) => describeSchemaFault(doubt, 'parameters'));
  return { ok: true, parameters, hydrate, output: output?.schema, disagreements, doubts };
}

interface Described {
  readonly schema: JsonSchema;
  readonly hydrate?: Hydrate;
  readonly disagreements?: readonly string[];
  readonly writer: 'author' | 'library';
}

function explicit(source: SchemaSource, what: string, faults: ParameterFault[]): Described | undefined {
  const read = readSchemaSource(source);
  if (!read.ok) {
    const { problem, causes, fix } = read;
    faults.push({ problem: `its \`${what}\` ${problem}`, causes, fix });
    return undefined;
  }
  const malformed = authorSchemaFaults(read.schema, read.standard === undefined ? 'all' : 'none');
  faults.push(...malformed.map((fault) => describeSchemaFault(fault, what)));
  if (malformed.length > 0) return undefined;
  const type = { kind: 'schema', schema: read.schema, standard: read.standard } as const;
  const hydrate = read.standard && createHydrator({ type });
  return { schema: read.schema, hydrate, writer: read.standard === undefined ? 'author' : 'library' };
}

const OBJECT_KEYWORDS = ['properties', 'additionalProperties', 'patternProperties', 'required'];

/** Arguments are an object; providers refuse a tool whose schema says otherwise. */
function objectSchema(described: Described | undefined, faults: ParameterFault[]): Described | undefined {
  if (described === undefined) return undefined;
  if (describesObject(described.schema, described.schema)) return described;
  faults.push({
    problem: 'its `parameters` describe no object',
    fix: "{ type: 'object', properties: { … } }, z.object({ … }) or Type.Object({ … })",
  });
  return undefined;
}

/** Of a union every branch has to, so that whatever is sent is an object. */
function describesObject(schema: JsonSchema, root: JsonSchema): boolean {
  const { type, anyOf, oneOf, allOf, ...others } = resolveReference(schema, root);
  if (type !== undefined) return type === 'object';
  const isObject = (branch: JsonSchema): boolean => describesObject(branch, root);
  if (Array.isArray(anyOf)) return anyOf.every(isObject);
  if (Array.isArray(oneOf)) return oneOf.every(isObject);
  if (Array.isArray(allOf) && allOf.some(isObject)) return true;
  const keywords = Object.keys(others);
  return keywords.length === 0 || OBJECT_KEYWORDS.some((keyword) => keyword in others);
}

function derived(
  { argumentsClass, argumentsType, properties }: Omit<MethodSignature, 'bindings'>,
  faults: ParameterFault[],
): Described | undefined {
  if (argumentsType !== undefined) return derivedFromType(argumentsType, faults);
  const written = argumentsClass
    ? classParameters(argumentsClass.class, argumentsClass.groups)
    : parametersOf(properties);
  if (!written.ok) {
    faults.push(...written.faults);
    return undefined;
  }
  const { schema, disagreements } = written;
  faults.push(...authorSchemaFaults(schema, argumentsClass ? 'none' : 'of arguments').map(faultOfParameter));
  const hydrate = createHydrator(argumentsClass ?? { properties });
  return { schema, disagreements, hydrate, writer: 'author' };
}

/** What `@Param` or the rules of a class say, by the name of the property that they say it of. */
function faultOfParameter(fault: SchemaFault): ParameterFault {
  const [, parameter, rest] = /^properties\.([^.]+)\.(.+)$/.exec(fault.path) ?? [];
  if (parameter === undefined) return describeSchemaFault(fault, 'parameters');
  return { parameter, problem: `its \`${rest}\` ${fault.problem}`, fix: fault.fix };
}

/** `@Args()` on an interface: the generated file says what it is. */
function derivedFromType(type: ValueType, faults: ParameterFault[]): Described | undefined {
  const written = typeParameters(type);
  if (!written.ok) {
    faults.push(...written.faults);
    return undefined;
  }
  const hydrate = createHydrator({ type });
  return objectSchema({ schema: written.schema, hydrate, writer: 'author' }, faults);
}
