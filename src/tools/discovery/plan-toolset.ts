import {
  type ClassType,
  COMPANIONS,
  type ServedAs,
  type ToolOptions,
  type ToolsetOptions,
  type ToolsetTitle,
} from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { Hydrate } from '../../core/contract/tool.js';
import {
  type AuthorFault,
  type OrFaults,
  type UnplacedFault,
  undescribed,
} from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import {
  type DeclaredKind,
  describedTool,
  type InheritedMethod,
  nearest,
  readRecord,
  toolMethods,
} from '../../core/metadata/class-record.js';
import {
  toolOptionFaults,
  toolsetOptionFaults,
  unloadedSchemaFaults,
} from '../../core/metadata/tool-option-faults.js';
import { apiDescription } from '../schema/class-model.js';
import {
  type ArgumentBinding,
  bindParameters,
  bindToSchema,
  createCaller,
  type MethodCaller,
} from './bind-parameters.js';
import { illegalName, TOOL_NAME } from './define-tool.js';
import {
  isInjectedType,
  type MethodFacts,
  type MethodFunction,
  methodFacts,
  type ParameterFacts,
} from './method-facts.js';
import { buildToolSchemas, fromSignature, type ToolSchemas } from './tool-schemas.js';

/** A tool of a class, complete except for the instance. */
export interface PlannedTool {
  readonly class: ClassType;
  readonly key: string | symbol;
  readonly name: string;
  readonly toolset?: ToolsetTitle;
  readonly served?: ServedAs | undefined;
  readonly options: ToolOptions;
  readonly parameters: JsonSchema;
  readonly output?: JsonSchema;
  readonly isOutputInferred: true | undefined;
  readonly hydrate?: Hydrate;
  readonly call: MethodCaller;
  /** The source of each parameter's value, in order. */
  readonly bindings: readonly ArgumentBinding[];
  readonly facts: MethodFacts;
}

/** The tools of one class, and all faults of its declarations. */
interface ToolsetPlan {
  readonly tools: readonly PlannedTool[];
  readonly faults: readonly AuthorFault[];
  /** Generated descriptions that no longer match the class. */
  readonly misfits: readonly AuthorFault[];
  /** Probable mistakes that do not prevent use: types and class-validator's rules that contradict each other. */
  readonly warnings: readonly AuthorFault[];
  /** Parameters that are required because no source declares them optional: `ShopTools.find(customerId)`. */
  readonly required: readonly string[];
}

/**
 * Reads all tool methods of a class and collects every fault. An integration may add facts to those of the
 * decorators.
 */
export function planToolset(
  toolset: ClassType,
  methods: readonly InheritedMethod[] = toolMethods(toolset),
): ToolsetPlan {
  const tools: PlannedTool[] = [];
  const { toolset: said = {}, description = {}, misplaced = [] } = readRecord(toolset) ?? {};
  const misfits = description.tools === undefined ? [] : goneTools(toolset, description.tools, methods);
  const warnings: AuthorFault[] = [];
  const required: string[] = [];
  const faults: AuthorFault[] = misplaced.map((place) => ({
    where: toolset.name,
    problem: `a parameter decorator is used at ${place}`,
    fix: '@Param, @Args and @Context on the parameters of tool methods; constructors are injected by type or @inject',
  }));
  faults.push(...toolsetOptionFaults(said).map((fault) => ({ where: toolset.name, ...fault })));
  if (!methods.some(({ record }) => record.tool !== undefined)) {
    faults.push({
      where: toolset.name,
      problem: 'it has no @Tool method',
      fix: '@Tool(…) before at least one method',
    });
  }
  for (const method of methods) {
    const planned = planMethod(toolset, isRecord(said) ? said : {}, method);
    const { tool, misfit, disagreements = [], required: unstated = [] } = planned;
    const where = `${toolset.name}.${String(method.record.key)}`;
    if (misfit !== undefined) misfits.push(misfitFault(where, `it ${misfit}`));
    warnings.push(...disagreements.map((problem) => ({ where, problem, fix: ONE_TYPE })));
    warnings.push(...(planned.warnings ?? []));
    required.push(...unstated.map((name) => `${where}(${name})`));
    if (tool !== undefined) tools.push(tool);
    faults.push(...(planned.faults ?? []).map((fault) => ({ where, ...fault })));
  }
  return { tools, faults, misfits, warnings, required };
}

/** Tools in the description that no longer exist. */
function goneTools(
  toolset: ClassType,
  described: object,
  methods: readonly InheritedMethod[],
): AuthorFault[] {
  const present = new Set<unknown>(methods.map(({ record }) => record.key));
  return Object.keys(described)
    .filter((name) => !present.has(name))
    .map((name) =>
      misfitFault(`${toolset.name}.${name}`, 'it is described by a generated file and is not a tool'),
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

/** A tool, or the faults of its declaration. */
interface PlannedMethod {
  readonly tool?: PlannedTool;
  readonly faults?: readonly UnplacedFault[];
  /** Why the generated description of the method was ignored; continues "it …". */
  readonly misfit?: string;
  readonly disagreements?: readonly string[];
  readonly warnings?: readonly AuthorFault[];
  readonly required?: readonly string[];
}

const ONE_TYPE = 'the same type for TypeScript and for class-validator';

function planMethod(toolset: ClassType, of: ToolsetOptions, method: InheritedMethod): PlannedMethod {
  const { record, declaredIn } = method;
  const { key, tool: said } = record;
  if (said === undefined)
    return faulty('it is decorated as a tool and has no @Tool', '@Tool(…) before the method');
  const misplaced = misplacedDecorator(record);
  if (misplaced !== undefined) return misplaced;
  const { served, given = said } = record;
  const kind = served?.kind ?? 'tool';
  const fn: unknown = Object.getOwnPropertyDescriptor(declaredIn.prototype, key)?.value;
  if (typeof fn !== 'function')
    return faulty(`${decoratorOf(kind)} is used on something that is not a method`, 'an ordinary method');
  const place = { record, toolset };
  const own = withPublic(isRecord(said) ? said : {}, place);
  const name = own.name ?? toolName(key, of);
  const ownFaults: UnplacedFault[] = [
    ...toolOptionFaults(isRecord(given) ? withPublic(given, place) : given, kind),
    ...unloadedSchemaFaults(said),
    ...companionFaults(toolset, own),
  ];
  if (!TOOL_NAME.test(name)) ownFaults.push(illegalName(name, kind));
  const written = (typeof record.method === 'function' ? record.method : fn) as MethodFunction;
  const facts = methodFacts(method, written, describedTool(toolset, key));
  const documented = apiDescription(written) ?? (written === fn ? undefined : apiDescription(fn));
  const options = withToolset(withDescription(own, facts, documented), of);
  const misfit = facts.ok ? facts.misfit : undefined;
  const understood = understand(facts, options);
  if (!understood.ok) return { faults: [...ownFaults, ...understood.faults], misfit };
  if (ownFaults.length > 0) return { faults: ownFaults, misfit };
  const { bindings, schemas } = understood;
  const { parameters, output, hydrate, disagreements, warnings } = schemas;
  const where = `${toolset.name}.${String(key)}`;
  const minified = minifiedNames(options, facts, declaredIn);
  if (minified !== undefined && !isDeveloped()) return { faults: [minified], misfit };
  return {
    misfit,
    disagreements,
    warnings: [
      ...missingDescription(options, where, kind),
      ...[minified ?? [], warnings].flat().map((warning) => ({ where, ...warning })),
    ],
    required: requiredByDefault(options, facts, bindings),
    tool: {
      class: toolset,
      key,
      name,
      toolset: toolsetTitle(toolset, of),
      served,
      options,
      parameters,
      output,
      isOutputInferred: (own.output === undefined && output !== undefined) || undefined,
      hydrate,
      call: createCaller(key, bindings),
      bindings,
      facts,
    },
  };
}

/** The fault of a decorator on a static method, or beside another decorator. */
function misplacedDecorator({ isStatic, kinds = [] }: InheritedMethod['record']): PlannedMethod | undefined {
  if (isStatic) {
    return faulty(
      'a static method has no instance to inject into',
      'an instance method, or registerFunction(…) for a plain function',
    );
  }
  if (kinds.length < 2) return undefined;
  return faulty(
    `it has ${kinds.toReversed().map(decoratorOf).join(' and ')}, and a method can be only one of them`,
    'a method for each of them',
  );
}

/** The options of a tool with `@Public` applied: on its method, or on its class for tools without scopes. */
function withPublic(
  options: ToolOptions,
  { record, toolset }: Pick<InheritedMethod, 'record'> & { readonly toolset: ClassType },
): ToolOptions {
  const isOfPublicClass = () => nearest(toolset, (ancestor) => readRecord(ancestor)?.isPublic);
  const isPublic = record.isPublic ?? (options.scopes === undefined && isOfPublicClass());
  return isPublic ? { ...options, public: true } : options;
}

/** Companion methods that a tool names but the class does not have. */
function companionFaults(toolset: ClassType, options: ToolOptions): readonly UnplacedFault[] {
  const faults: UnplacedFault[] = [];
  for (const role of COMPANIONS) {
    const name: unknown = options[role];
    if (typeof name !== 'string' || isMethodOf(toolset.prototype, name)) continue;
    const problem = `its \`${role}\` names '${name}', which is not a method of ${toolset.name}`;
    faults.push({ problem, fix: `${role}: the name of an instance method of the same class` });
  }
  return faults;
}

/** Does not run getters. */
function isMethodOf(prototype: object | null, name: string): boolean {
  for (
    let level = prototype;
    level !== null && level !== Object.prototype;
    level = Object.getPrototypeOf(level)
  ) {
    const own = Object.getOwnPropertyDescriptor(level, name);
    if (own !== undefined) return typeof own.value === 'function' && name !== 'constructor';
  }
  return false;
}

/** The toolset's defaults for tools without their own settings. */
function withToolset(options: ToolOptions, { defer, namespace }: ToolsetOptions): ToolOptions {
  if (defer === undefined && namespace === undefined) return options;
  return { ...options, defer: options.defer ?? defer, namespace: options.namespace ?? namespace };
}

/** `@Tool` wins over `@ApiOperation`, and that over the generated file. */
function withDescription(
  options: ToolOptions,
  facts: MethodFacts,
  documented: string | undefined,
): ToolOptions {
  const generated = facts.ok ? facts.generated : undefined;
  if (generated === undefined && documented === undefined) return options;
  return {
    ...options,
    description: options.description ?? documented ?? generated?.description,
    output: options.output ?? generated?.output,
  };
}

/** An explicit schema defines the parameters; otherwise the parameters define the schema. */
function understand(
  facts: MethodFacts,
  options: ToolOptions,
): OrFaults<{ readonly schemas: ToolSchemas; readonly bindings: readonly ArgumentBinding[] }> {
  if (options.parameters === undefined) {
    const bound = facts.ok ? bindParameters(facts.parameters) : unreadable(facts.problem);
    if (!bound.ok) return bound;
    const schemas = buildToolSchemas(options, (faults) => fromSignature(bound.arguments, faults));
    return schemas.ok ? { ...bound, schemas } : schemas;
  }
  const schemas = buildToolSchemas(options);
  if (!schemas.ok) return schemas;
  const bound = facts.ok ? bindToSchema(facts.parameters, schemas.parameters) : unreadable(facts.problem);
  return bound.ok ? { ...bound, schemas } : bound;
}

function unreadable(problem: string): OrFaults<never> {
  const causes = [
    'a decorator below @Tool has put another function in the method’s place',
    'the compile target turns async methods into generators (use ES2017 or newer)',
  ];
  const fix = '@Tool next to the method, below other decorators; or @Param({ name: … }) on every parameter';
  return { ok: false, faults: [{ problem, causes, fix }] };
}

/** A method's name as a tool's name: `findOrders` → `find_orders`, `getHTTPStatus` → `get_http_status`. */
function toolName(key: string | symbol, { prefix }: ToolsetOptions): string {
  const name = typeof key === 'symbol' ? (key.description ?? '') : key;
  const derived = name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s$-]+/g, '_').toLowerCase();
  return prefix ? `${prefix}_${derived}` : derived;
}

function toolsetTitle(toolset: ClassType, { name, description }: ToolsetOptions): ToolsetTitle | undefined {
  return name || description ? { name: name || toolset.name, description } : undefined;
}

function faulty(problem: string, fix: string): PlannedMethod {
  return { faults: [{ problem, fix }] };
}

/** `@Tool`, `@Prompt`, … */
function decoratorOf(kind: DeclaredKind): string {
  return `@${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
}

/** How another name is given to a method. */
export const NAMING: Readonly<Record<DeclaredKind, string>> = {
  tool: '@Tool({ name })',
  prompt: '@Prompt({ name })',
  resource: '@Resource(uri, { name })',
  completion: 'another method name',
};

const DESCRIBING: Readonly<Record<DeclaredKind, string>> = {
  tool: "@Tool('What it does, and when')",
  prompt: "@Prompt('What it asks for')",
  resource: "@Resource(uri, 'What it contains')",
  completion: '',
};

function missingDescription(
  { description }: ToolOptions,
  where: string,
  kind: DeclaredKind,
): readonly AuthorFault[] {
  const fix = `${DESCRIBING[kind]}, or a comment and npx toolwright generate`;
  return description?.trim() ? [] : [undescribed(where, fix)];
}

/** One-letter names in a renamed class come from the minifier, and the model would see them. */
function minifiedNames(
  options: ToolOptions,
  facts: MethodFacts,
  declaredIn: ClassType,
): UnplacedFault | undefined {
  const names = inferredParameters(options, facts).flatMap((parameter) => {
    const { records, parsed } = parameter;
    const isProperty = records.length === 0 || records[0]?.role === 'property';
    const isNamed = paramOptions(parameter)?.name !== undefined;
    return isProperty && !isNamed && parsed?.name !== undefined ? [parsed.name] : [];
  });
  const isShort = names.length > 0 && names.every((name) => name.length === 1);
  if (!isShort || !isMinified(declaredIn)) return undefined;
  return {
    problem: `a minifier seems to have named its parameters (${names.join(', ')}), and the model sees these names`,
    fix: "npx toolwright generate, and import the file that it writes; @Param({ name: '…' }); or a minifier that keeps names",
  };
}

/** In development, a warning is read; elsewhere the application must not start with wrong names. */
function isDeveloped(): boolean {
  const { NODE_ENV: environment = '' } = process.env;
  return ['', 'development', 'test'].includes(environment);
}

/**
 * The names of parameters that are required although the author may have written `?`: neither their decorators nor a
 * generated file state it, and decorator metadata cannot.
 */
function requiredByDefault(
  options: ToolOptions,
  facts: MethodFacts,
  bindings: readonly ArgumentBinding[],
): readonly string[] {
  return inferredParameters(options, facts).flatMap((parameter, index) => {
    const binding = bindings[index];
    if (binding?.from !== 'property' || parameter.parsed?.hasDefault) return [];
    return paramOptions(parameter)?.required === undefined ? [binding.name] : [];
  });
}

/** The parameters that no schema and no generated file describes. */
function inferredParameters(options: ToolOptions, facts: MethodFacts): readonly ParameterFacts[] {
  const isDescribed = options.parameters !== undefined || !facts.ok || facts.generated !== undefined;
  return isDescribed ? [] : facts.parameters;
}

function paramOptions({ records }: ParameterFacts) {
  const record = records[0];
  return record?.role === 'property' ? record.options : undefined;
}

/**
 * Whether a class is in one line and its source calls it by two letters at most. Its `name` may be restored; tools that
 * only remove whitespace, such as tsx, leave the name in the source.
 */
function isMinified(declared: ClassType): boolean {
  const source = Function.prototype.toString.call(declared);
  const [, name = declared.name] = /^class\s+(?!extends\b)([\w$]+)/.exec(source) ?? [];
  return name.length <= 2 && !source.includes('\n');
}

/** The sources of a tool's schema, strongest first. */
type SchemaOrigin = 'explicit' | '@Param' | 'generated' | 'metadata';

const ORDER: readonly SchemaOrigin[] = ['explicit', '@Param', 'generated', 'metadata'];

/** Options of `@Param` that state a type. */
const TYPE_OPTIONS = ['type', 'items', 'enum', 'additionalProperties'] as const;

/** Every source of a tool's schema, strongest first. */
export function schemaOrigins({ facts, options }: PlannedTool): readonly SchemaOrigin[] {
  if (options.parameters !== undefined) return ['explicit'];
  if (!facts.ok) return [];
  const found = new Set(facts.parameters.flatMap(originsOf));
  return ORDER.filter((origin) => found.has(origin));
}

function originsOf({ records, designType, generated }: ParameterFacts): readonly SchemaOrigin[] {
  const [record] = records;
  if (record?.role === 'context' || (record === undefined && isInjectedType(designType))) return [];
  const options = record?.role === 'property' ? record.options : {};
  if (options.schema !== undefined) return ['explicit'];
  const derived: SchemaOrigin = generated === undefined ? 'metadata' : 'generated';
  if (TYPE_OPTIONS.some((option) => options[option] !== undefined)) return ['@Param'];
  return Object.keys(options).length === 0 ? [derived] : ['@Param', derived];
}
