import type { ToolOptions } from '../../core/contract/declaration.js';
import type { JsonSchema, SchemaSource } from '../../core/contract/json-schema.js';
import type { Hydrate } from '../../core/contract/tool.js';
import type { OrFaults, UnplacedFault } from '../../core/errors/author-fault.js';
import { createHydrator, standardHydrator } from '../checking/hydration/create-hydrator.js';
import {
  authorSchemaFaults,
  describeSchemaFault,
  type SchemaFault,
  schemaWarnings,
} from '../checking/schema-faults.js';
import { resolveReference } from '../checking/schema-level.js';
import { readSchemaSource } from '../schema/schema-source.js';
import { type ArgumentsModel, arePlain } from '../schema/value-type.js';
import { writeParameters } from '../schema/write-schema.js';

/** The schemas of a tool, and how its arguments are hydrated. */
export interface ToolSchemas {
  readonly parameters: JsonSchema;
  readonly output?: JsonSchema;
  readonly hydrate?: Hydrate;
  /** Contradictions between types and rules of DTO classes. */
  readonly disagreements?: readonly string[];
  /** Probable mistakes in the schemas that do not prevent use. */
  readonly warnings: readonly UnplacedFault[];
}

/** The schemas of a tool. Without explicit `parameters`, `build` creates them from the signature, if there is one. */
export function buildToolSchemas(
  options: Pick<ToolOptions, 'parameters' | 'output' | 'input'>,
  build: (faults: UnplacedFault[]) => BuiltSchema | undefined = () => NO_PARAMETERS,
): OrFaults<ToolSchemas> {
  const faults: UnplacedFault[] = [];
  const output = options.output ? fromSource(options.output, 'output', faults) : undefined;
  const input = options.parameters ? fromSource(options.parameters, 'parameters', faults) : build(faults);
  if (input !== undefined && !input.isObject) faults.push(...objectFaults(input.schema));
  if (input !== undefined && options.input === 'text') faults.push(...textInputFaults(input.schema));
  if (input === undefined || faults.length > 0) return { ok: false, faults };
  const { schema: parameters, hydrate, disagreements } = input;
  const warnings: UnplacedFault[] = [];
  for (const [built, what] of [
    [input, 'parameters'],
    [output, 'output'],
  ] as const)
    if (built !== undefined && built.writer !== 'framework')
      for (const warning of schemaWarnings(built.schema, built.writer))
        warnings.push(describeSchemaFault(warning, what));
  return { ok: true, parameters, hydrate, output: output?.schema, disagreements, warnings };
}

interface BuiltSchema {
  readonly schema: JsonSchema;
  /** It certainly describes an object. */
  readonly isObject?: boolean;
  readonly hydrate?: Hydrate;
  readonly disagreements?: readonly string[];
  /** The author of the schema; schemas of the framework need no check. */
  readonly writer: 'author' | 'library' | 'framework';
}

const NO_PARAMETERS: BuiltSchema = {
  schema: { type: 'object', properties: {}, required: [] },
  isObject: true,
  writer: 'framework',
};

function fromSource(source: SchemaSource, what: string, faults: UnplacedFault[]): BuiltSchema | undefined {
  const read = readSchemaSource(source);
  if (!read.ok) {
    const { problem, causes, fix } = read;
    faults.push({ problem: `its \`${what}\` ${problem}`, causes, fix });
    return undefined;
  }
  const { schema, standard } = read;
  const malformed = authorSchemaFaults(schema);
  faults.push(...malformed.map((fault) => describeSchemaFault(fault, what)));
  if (malformed.length > 0) return undefined;
  if (standard === undefined) return { schema, writer: 'author' };
  return { schema, hydrate: standardHydrator(standard), writer: 'library' };
}

/** The root must be an object, because providers refuse other tools. */
export function objectFaults(schema: JsonSchema): readonly UnplacedFault[] {
  if (describesObject(schema, schema)) return [];
  const fix = "{ type: 'object', properties: { … } }, z.object({ … }) or Type.Object({ … })";
  return [{ problem: 'its `parameters` do not describe an object', fix }];
}

/** The faults of a tool with text input whose parameters are not a single string. */
export function textInputFaults({ type = 'object', properties = {} }: JsonSchema): readonly UnplacedFault[] {
  const [first, ...others] = Object.values(properties);
  if (type === 'object' && others.length === 0 && first?.type === 'string') return [];
  const problem = "its `input` is 'text', but it does not have exactly one string parameter";
  return [{ problem, fix: "exactly one parameter of type string; or leave out `input: 'text'`" }];
}

const OBJECT_KEYWORDS = ['properties', 'additionalProperties', 'patternProperties', 'required'];

/** Every branch of a union must describe an object. */
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

/** The schema of a signature: its parameters, a DTO class, or a generated type. */
export function fromSignature(model: ArgumentsModel, faults: UnplacedFault[]): BuiltSchema | undefined {
  const written = writeParameters(model);
  if (!written.ok) {
    faults.push(...written.faults);
    return undefined;
  }
  const { schema, accepted, disagreements } = written;
  const isObject = !('type' in model);
  if ('properties' in model && arePlain(model.properties)) return { schema, isObject, writer: 'framework' };
  if (isObject) {
    // The parameters whose default the author declared, by `@Param`, a literal or the generated file. Defaults inside
    // a class may only be documentation, and those inside a schema belong to that schema.
    const declared: JsonSchema[] = [];
    for (const { name, keywords } of 'properties' in model ? model.properties : []) {
      const property = keywords.default === undefined ? undefined : schema.properties?.[name];
      if (property !== undefined) declared.push(property);
    }
    faults.push(...authorSchemaFaults(schema, declared).map(faultOfParameter));
  }
  return { schema, isObject, disagreements, hydrate: createHydrator(model, accepted), writer: 'author' };
}

/** Assigns a fault of `@Param` or of a class's rules to its parameter. */
function faultOfParameter(fault: SchemaFault): UnplacedFault {
  const [, parameter, rest] = /^properties\.([^.]+)\.(.+)$/.exec(fault.path) ?? [];
  if (parameter === undefined) return describeSchemaFault(fault, 'parameters');
  return { parameter, problem: `its \`${rest}\` ${fault.problem}`, fix: fault.fix };
}
