import type { ClassType } from '../contract/class-type.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { Hydrate } from '../contract/tool-definition.js';
import type { ToolOptions } from '../contract/tool-options.js';
import type { ToolsetTitle } from '../contract/toolset-options.js';
import type { AuthorFault } from '../errors/author-fault.js';
import { isRecord } from '../kernel/is-record.js';
import { readRecord } from '../metadata/class-record.js';
import { describedTool, readDescription } from '../metadata/record-description.js';
import { type InheritedMethod, toolMethods } from '../metadata/tool-methods.js';
import { toolOptionFaults, toolsetOptionFaults } from '../metadata/tool-option-faults.js';
import { unloadedSchemaFaults } from '../metadata/unloaded-schema.js';
import { apiDescription } from '../schema/api-property.js';
import { type ArgumentBinding, createCaller, type MethodCaller } from './argument-binding.js';
import { bindExplicit } from './bind-explicit.js';
import {
  type DescribedMethod,
  describeMethod,
  type MethodSignature,
  type ParameterFault,
} from './describe-method.js';
import { describeSchemas, type ToolSchemas } from './describe-schemas.js';
import { doubtsAbout, requiredByDefault } from './doubtful-method.js';
import {
  gatherParameters,
  type MethodFacts,
  type MethodFunction,
  type ParameterFacts,
} from './parameter-facts.js';
import { type SchemaOrigin, schemaOrigins } from './schema-origins.js';
import { illegalName, TOOL_NAME, toSnakeCase } from './tool-name.js';

/** One tool of a class, complete but for the instance. */
export interface PlannedTool {
  readonly class: ClassType;
  readonly key: string | symbol;
  readonly name: string;
  readonly toolset?: ToolsetTitle;
  readonly options: ToolOptions;
  readonly parameters: JsonSchema;
  readonly output?: JsonSchema;
  readonly isOutputInferred: true | undefined;
  readonly hydrate?: Hydrate;
  readonly call: MethodCaller;
  /** Where each parameter of the method gets its value from, in order. */
  readonly bindings: readonly ArgumentBinding[];
  /** What of the call the method is given besides its arguments. */
  readonly injected: ReadonlySet<'context' | 'signal'>;
  /** What told its schema, the strongest first. */
  readonly origins: readonly SchemaOrigin[];
}

/** The tools of one class, and everything that is wrong with its declarations. */
export interface ToolsetPlan {
  readonly tools: readonly PlannedTool[];
  readonly faults: readonly AuthorFault[];
  /** Generated descriptions that no longer fit the class. */
  readonly misfits: readonly AuthorFault[];
  /** What works and is probably not meant: types and class-validator's rules that say different things. */
  readonly warnings: readonly AuthorFault[];
  /** Parameters that are required because nothing says whether they are: `ShopTools.find(customerId)`. */
  readonly required: readonly string[];
}

/**
 * Understands all tool methods of a class; every fault of every method is collected. A bridge may say more of
 * the methods than their own decorators do.
 */
export function planToolset(
  toolset: ClassType,
  methods: readonly InheritedMethod[] = toolMethods(toolset),
): ToolsetPlan {
  const tools: PlannedTool[] = [];
  const misfits = goneTools(toolset, methods);
  const warnings: AuthorFault[] = [];
  const required: string[] = [];
  const faults: AuthorFault[] = (readRecord(toolset)?.misplaced ?? []).map((place) => ({
    where: toolset.name,
    problem: `a parameter decorator stands at ${place}`,
    fix: '@Param, @Args and @Context on the parameters of tool methods; constructors are injected by type or @inject',
  }));
  const { toolset: options = {} } = readRecord(toolset) ?? {};
  faults.push(...toolsetOptionFaults(options).map((fault) => ({ where: toolset.name, ...fault })));
  if (!methods.some(({ record }) => record.tool !== undefined)) {
    faults.push({
      where: toolset.name,
      problem: 'it has no @Tool method',
      fix: '@Tool(…) before at least one method',
    });
  }
  for (const method of methods) {
    const planned = planMethod(toolset, method);
    const where = `${toolset.name}.${String(method.record.key)}`;
    if (planned.misfit !== undefined) misfits.push(misfitFault(where, `it ${planned.misfit}`));
    warnings.push(...(planned.disagreements ?? []).map((problem) => ({ where, problem, fix: ONE_TYPE })));
    warnings.push(...(planned.doubts ?? []));
    required.push(...(planned.required ?? []));
    if ('tool' in planned) tools.push(planned.tool);
    else faults.push(...planned.faults.map((fault) => ({ where, ...fault })));
  }
  return { tools, faults, misfits, warnings, required };
}

/** Tools that were described and are no more. */
function goneTools(toolset: ClassType, methods: readonly InheritedMethod[]): AuthorFault[] {
  const present = new Set<unknown>(methods.map(({ record }) => record.key));
  return Object.keys(readDescription(toolset)?.tools ?? {})
    .filter((name) => !present.has(name))
    .map((name) =>
      misfitFault(`${toolset.name}.${name}`, 'it is described by a generated file and is no tool'),
    );
}

function misfitFault(where: string, problem: string): AuthorFault {
  return {
    where,
    problem,
    causes: ['the class was changed after its description was generated'],
    fix: 'npx toolwright generate',
  };
}

type PlannedMethod = ({ readonly tool: PlannedTool } | { readonly faults: readonly ParameterFault[] }) & {
  /** Why the generated description of the method was left aside, continuing "it …". */
  readonly misfit?: string;
  readonly disagreements?: readonly string[];
  readonly doubts?: readonly AuthorFault[];
  readonly required?: readonly string[];
};

const ONE_TYPE = 'the same type for TypeScript and for class-validator';

function planMethod(toolset: ClassType, method: InheritedMethod): PlannedMethod {
  const { record, declaredIn } = method;
  if (record.tool === undefined)
    return only('its parameters are decorated, but it is no tool', '@Tool(…) before the method');
  if (record.isStatic) {
    return only(
      'a static method has no instance to inject into',
      'an instance method, or registerFunction(…) for a plain function',
    );
  }
  const fn: unknown = Object.getOwnPropertyDescriptor(declaredIn.prototype, record.key)?.value;
  if (typeof fn !== 'function')
    return only('@Tool stands on something that is no method', 'an ordinary method');
  const wrong = [...toolOptionFaults(record.tool), ...unloadedSchemaFaults(record.tool)];
  const said = isRecord(record.tool) ? (record.tool as ToolOptions) : {};
  const name = nameOf(toolset, record.key, said);
  const ownFaults = [...wrong, ...(TOOL_NAME.test(name) ? [] : [illegalName(name)])];
  const written = typeof record.method === 'function' ? record.method : fn;
  const facts = gatherParameters(method, written as MethodFunction, describedTool(toolset, record.key));
  const options = withDescription(said, facts, apiDescription(written) ?? apiDescription(fn));
  const misfit = facts.ok ? facts.misfit : undefined;
  const understood = understand(facts, options);
  if (!understood.ok) return { faults: [...ownFaults, ...understood.faults], misfit };
  if (ownFaults.length > 0) return { faults: ownFaults, misfit };
  const { schemas, signature } = understood;
  const { parameters, output, hydrate } = schemas;
  const { bindings } = signature;
  const where = `${toolset.name}.${String(record.key)}`;
  const planned = { where, options, method: written as MethodFunction, facts, bindings };
  return {
    misfit,
    disagreements: schemas.disagreements,
    doubts: [...doubtsAbout(planned), ...schemas.doubts.map((doubt) => ({ where, ...doubt }))],
    required: requiredByDefault(planned),
    tool: {
      class: toolset,
      key: record.key,
      name,
      toolset: titleOf(toolset),
      options,
      parameters,
      output,
      isOutputInferred: (said.output === undefined && output !== undefined) || undefined,
      hydrate,
      call: createCaller(record.key, bindings),
      bindings,
      injected: injectedBy(bindings),
      origins: schemaOrigins(facts, options),
    },
  };
}

type UnderstoodMethod =
  | { readonly ok: true; readonly schemas: ToolSchemas; readonly signature: MethodSignature }
  | { readonly ok: false; readonly faults: readonly ParameterFault[] };

/** What the author says in `@Tool` comes before `@ApiOperation`, and that before what the generated file says. */
function withDescription(
  options: ToolOptions,
  facts: MethodFacts,
  documented: string | undefined,
): ToolOptions {
  const described = facts.ok ? facts.described : undefined;
  if (described === undefined && documented === undefined) return options;
  return {
    ...options,
    description: options.description ?? documented ?? described?.description,
    output: options.output ?? described?.output,
  };
}

/** An explicit schema comes first, because it says what the parameters are; otherwise they say what it is. */
function understand(facts: MethodFacts, options: ToolOptions): UnderstoodMethod {
  if (options.parameters !== undefined) {
    const schemas = describeSchemas(options, { properties: [] });
    if (!schemas.ok) return schemas;
    const signature = readSignature(facts, (parameters) => bindExplicit(parameters, schemas.parameters));
    return signature.ok ? { ok: true, schemas, signature: signature.signature } : signature;
  }
  const signature = readSignature(facts, describeMethod);
  if (!signature.ok) return signature;
  const schemas = describeSchemas(options, signature.signature);
  return schemas.ok ? { ok: true, schemas, signature: signature.signature } : schemas;
}

function readSignature(
  facts: MethodFacts,
  describe: (facts: readonly ParameterFacts[]) => DescribedMethod,
): DescribedMethod {
  if (facts.ok) return describe(facts.parameters);
  return {
    ok: false,
    faults: [
      {
        problem: facts.problem,
        causes: [
          'a decorator below @Tool has put another function in the method’s place',
          'the compile target turns async methods into generators (use ES2017 or newer)',
        ],
        fix: '@Tool next to the method, below other decorators; or @Param({ name: … }) on every parameter',
      },
    ],
  };
}

function nameOf(toolset: ClassType, key: string | symbol, options: ToolOptions): string {
  if (options.name !== undefined) return options.name;
  const derived = toSnakeCase(typeof key === 'symbol' ? (key.description ?? '') : key);
  const prefix = readRecord(toolset)?.toolset?.prefix;
  return prefix ? `${prefix}_${derived}` : derived;
}

function titleOf(toolset: ClassType): ToolsetTitle | undefined {
  const { name, description } = readRecord(toolset)?.toolset ?? {};
  return name || description ? { name: name || toolset.name, description } : undefined;
}

function only(problem: string, fix: string): PlannedMethod {
  return { faults: [{ problem, fix }] };
}

function injectedBy(bindings: readonly ArgumentBinding[]): ReadonlySet<'context' | 'signal'> {
  return new Set(bindings.flatMap(({ from }) => (from === 'context' || from === 'signal' ? [from] : [])));
}
