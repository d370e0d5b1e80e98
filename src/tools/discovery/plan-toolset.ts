import {
  type ArgsOptions,
  type ClassType,
  COMPANIONS,
  type ParamOptions,
  type ServedAs,
  type ToolOptions,
  type ToolsetOptions,
  type ToolsetTitle,
} from '../../core/contract/declaration.js';
import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { Hydrate } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import {
  type AuthorFault,
  type OrFaults,
  type UnplacedFault,
  undescribed,
} from '../../core/errors/author-fault.js';
import { isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { listOf, optionFaults, optionTable, TEXT } from '../../core/kernel/options.js';
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
import { fromParameter } from '../schema/from-declaration.js';
import type { ArgumentsModel, PropertyModel } from '../schema/value-type.js';
import { NO_METADATA, resolveDesignType } from '../schema/value-type.js';
import { illegalName, TOOL_NAME } from './define-tool.js';
import { isInjectedType, type MethodFacts, methodFacts, type ParameterFacts } from './method-facts.js';
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
  const present = new Set<unknown>(methods.map(({ record }) => record.key));
  const misfits: AuthorFault[] = [];
  for (const name of Object.keys(description.tools ?? {}))
    if (!present.has(name))
      misfits.push(
        misfitFault(`${toolset.name}.${name}`, 'it is described by a generated file, but is not a tool'),
      );
  const warnings: AuthorFault[] = [];
  const required: string[] = [];
  const faults: AuthorFault[] = misplaced.map((place) => ({
    where: toolset.name,
    problem: `a parameter decorator is used at ${place}`,
    fix: '@Param, @Args and @Context on the parameters of tool methods; constructors are injected by type or @inject',
  }));
  const ofToolset = toolsetOptionFaults(said);
  faults.push(...ofToolset.map((fault) => ({ where: toolset.name, ...fault })));
  // A wrong prefix is one fault, not a fault of each name.
  const isMisnamed = ofToolset.some(({ option }) => option === 'prefix');
  const options: ToolsetOptions = isRecord(said) ? { ...said, ...(isMisnamed && { prefix: '' }) } : {};
  if (!methods.some(({ record }) => record.tool !== undefined)) {
    faults.push({
      where: toolset.name,
      problem: 'it has no @Tool method',
      fix: '@Tool(…) before at least one method',
    });
  }
  for (const method of methods) {
    const planned = planMethod(toolset, options, method);
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

const ONE_TYPE = 'rules for the type of the property, with `each: true` for rules of its items';

function planMethod(toolset: ClassType, of: ToolsetOptions, method: InheritedMethod): PlannedMethod {
  const { record, declaredIn } = method;
  const { key, tool: said, served, given = said } = record;
  const kind = served?.kind ?? 'tool';
  const misused = misuseOf(record);
  if (misused !== undefined) return { faults: [misused] };
  const fn: unknown = Object.getOwnPropertyDescriptor(declaredIn.prototype, key)?.value;
  const noMethod = `${decoratorOf(kind)} is not on a method`;
  if (typeof fn !== 'function') return { faults: [{ problem: noMethod, fix: 'an ordinary method' }] };
  const place = { record, toolset };
  const own = withPublic(isRecord(said) ? said : {}, place);
  const name = own.name ?? toolName(key, of);
  const ownFaults: UnplacedFault[] = [
    ...toolOptionFaults(isRecord(given) ? withPublic(given, place) : given, kind),
    ...unloadedSchemaFaults(said),
    ...companionFaults(toolset, own),
  ];
  if (!TOOL_NAME.test(name)) ownFaults.push(illegalName(name, kind));
  const written = (typeof record.method === 'function' ? record.method : fn) as (...args: never[]) => unknown;
  const facts = methodFacts(method, written, describedTool(toolset, key));
  const { generated, misfit = undefined } = facts.ok ? facts : {};
  const documented = apiDescription(written) ?? (written === fn ? undefined : apiDescription(fn));
  // `@Tool` wins over `@ApiOperation`, and that over the generated file; then come the toolset's defaults.
  const options = withoutUndefined({
    ...own,
    description: own.description ?? documented ?? generated?.description,
    output: own.output ?? generated?.output,
    defer: own.defer ?? of.defer,
    namespace: own.namespace ?? of.namespace,
  });
  const understood = understand(facts, options);
  if (!understood.ok) return { faults: [...ownFaults, ...understood.faults], misfit };
  if (ownFaults.length > 0) return { faults: ownFaults, misfit };
  const { bindings, schemas } = understood;
  const where = `${toolset.name}.${String(key)}`;
  const minified = minifiedNames(options, facts, declaredIn);
  // In development, a warning is read; elsewhere the application must not start with wrong names.
  const isDeveloped = ['', 'development', 'test'].includes(process.env.NODE_ENV ?? '');
  if (minified !== undefined && !isDeveloped) return { faults: [minified], misfit };
  const warnings = [minified ?? [], schemas.warnings].flat().map((warning) => ({ where, ...warning }));
  if (!options.description?.trim())
    warnings.unshift(undescribed(where, `${DESCRIBING[kind]}, or a comment and npx toolwright generate`));
  const { parameters, output, hydrate, disagreements } = schemas;
  const call = createCaller(key, bindings);
  const isOutputInferred = (own.output === undefined && output !== undefined) || undefined;
  const shape = { parameters, output, isOutputInferred, hydrate, call, bindings, facts };
  return {
    misfit,
    disagreements,
    warnings,
    required: requiredByDefault(options, facts, bindings),
    tool: { class: toolset, key, name, toolset: toolsetTitle(toolset, of), served, options, ...shape },
  };
}

/** The fault of a decorator on a static method, or beside another decorator. */
function misuseOf({ isStatic, kinds = [], tool }: InheritedMethod['record']): UnplacedFault | undefined {
  if (tool === undefined)
    return { problem: 'it has decorators of a tool, but no @Tool', fix: '@Tool(…) before the method' };
  if (isStatic)
    return {
      problem: 'a static method has no instance to inject into',
      fix: 'an instance method, or registerFunction(…) for a plain function',
    };
  if (kinds.length < 2) return undefined;
  return {
    problem: `it has ${kinds.toReversed().map(decoratorOf).join(' and ')}, and a method can have only one of them`,
    fix: 'a separate method for each',
  };
}

function toolsetTitle(toolset: ClassType, { name, description }: ToolsetOptions): ToolsetTitle | undefined {
  return name || description ? { name: name || toolset.name, description } : undefined;
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
    if (typeof name !== 'string') continue;
    let own: PropertyDescriptor | undefined;
    let level: object | null = toolset.prototype;
    // Does not run getters.
    while (own === undefined && level !== null && level !== Object.prototype) {
      own = Object.getOwnPropertyDescriptor(level, name);
      level = Object.getPrototypeOf(level);
    }
    if (typeof own?.value === 'function' && name !== 'constructor') continue;
    const problem = `its \`${role}\` names '${name}', which is not a method of ${toolset.name}`;
    faults.push({ problem, fix: `${role}: the name of an instance method of the same class` });
  }
  return faults;
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
    'a decorator below @Tool has replaced the method with another function',
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

/** One-letter names in a renamed class come from the minifier, and the model would see them. */
function minifiedNames(
  options: ToolOptions,
  facts: MethodFacts,
  declaredIn: ClassType,
): UnplacedFault | undefined {
  const names: string[] = [];
  for (const parameter of inferredParameters(options, facts)) {
    const { records, parsed } = parameter;
    const isArguments = records[0]?.role === 'arguments';
    const isProperty = !isArguments && injectedBinding(parameter) === undefined;
    if (isProperty && paramOptions(parameter)?.name === undefined && parsed?.name !== undefined)
      names.push(parsed.name);
  }
  // Its `name` may be restored; tools that only remove whitespace, such as tsx, leave the name in the source.
  const source = Function.prototype.toString.call(declaredIn);
  const [, className = declaredIn.name] = /^class\s+(?!extends\b)([\w$]+)/.exec(source) ?? [];
  const isMinified = className.length <= 2 && !source.includes('\n');
  if (!isMinified || names.length === 0 || names.some((name) => name.length > 1)) return undefined;
  return {
    problem: `a minifier seems to have renamed its parameters (${names.join(', ')}), and the model sees these names`,
    fix: "npx toolwright generate, and import the generated file; @Param({ name: '…' }); or a minifier that preserves names",
  };
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

/** The sources of a tool's schema, strongest first. */
type SchemaOrigin = 'explicit' | '@Param' | 'generated' | 'metadata';

const ORDER: readonly SchemaOrigin[] = ['explicit', '@Param', 'generated', 'metadata'];

/** Options of `@Param` that state a type. */
const TYPE_OPTIONS = ['type', 'items', 'enum', 'additionalProperties'] as const;

/** Every source of a tool's schema, strongest first. */
export function schemaOrigins({ facts, options }: PlannedTool): readonly SchemaOrigin[] {
  if (options.parameters !== undefined) return ['explicit'];
  if (!facts.ok) return [];
  const found = new Set<SchemaOrigin>();
  for (const { records, designType, generated } of facts.parameters) {
    const [record] = records;
    if (record?.role === 'context' || (record === undefined && isInjectedType(designType))) continue;
    const options = record?.role === 'property' ? record.options : {};
    const isTyped = TYPE_OPTIONS.some((option) => options[option] !== undefined);
    if (options.schema !== undefined) found.add('explicit');
    else if (isTyped || Object.keys(options).length > 0) found.add('@Param');
    if (options.schema === undefined && !isTyped)
      found.add(generated === undefined ? 'metadata' : 'generated');
  }
  return ORDER.filter((origin) => found.has(origin));
}

/** The signature of a method: the source of each parameter's value, and the model of the arguments. */
interface MethodSignature {
  readonly bindings: readonly ArgumentBinding[];
  readonly arguments: ArgumentsModel;
}

/** A parameter that receives a property of the arguments, all arguments, or an injected value. */
interface BoundParameter {
  readonly binding: ArgumentBinding;
  readonly property?: PropertyModel;
  readonly whole?: ArgumentsModel;
}

/** Reads a method's parameters. Collects every fault instead of stopping at the first. */
function bindParameters(parameters: readonly ParameterFacts[]): OrFaults<MethodSignature> {
  const isAlone = areAlone(parameters);
  const bindings: ArgumentBinding[] = [];
  const properties: PropertyModel[] = [];
  const wholes: ArgumentsModel[] = [];
  const faults: UnplacedFault[] = [];
  for (const facts of parameters) {
    const bound = bindParameter(facts, isAlone);
    if ('problem' in bound) {
      faults.push(bound);
      continue;
    }
    bindings.push(bound.binding);
    if (bound.property !== undefined) properties.push(bound.property);
    if (bound.whole !== undefined) wholes.push(bound.whole);
  }
  const receivers = parameters.filter((facts) => {
    const record = facts.records[0];
    const isFilled = record?.role === 'context' && record.isFilled === true;
    return !isFilled && injectedBinding(facts)?.from === 'context';
  });
  if (receivers.length > 1)
    faults.push({ problem: 'two parameters receive the context', fix: 'one context parameter' });
  if (wholes.length > 0 && (properties.length > 0 || wholes.length > 1))
    faults.push({
      problem: 'one parameter receives the whole arguments object, and others receive properties of it',
      fix: 'either one @Args() parameter, or @Param on each',
    });
  const names = new Set<string>();
  const doubled = new Set<string>();
  for (const { name } of properties) (names.has(name) ? doubled : names).add(name);
  for (const name of doubled)
    faults.push({
      problem: `two parameters have the property name "${name}"`,
      fix: 'different names in @Param({ name })',
    });
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, bindings, arguments: wholes[0] ?? { properties } };
}

/**
 * Binds a method's parameters to an explicit schema, which replaces their types. A parameter receives the property
 * with its name. A single parameter that matches no property receives the whole arguments object.
 */
function bindToSchema(
  parameters: readonly ParameterFacts[],
  schema: JsonSchema,
): OrFaults<Pick<MethodSignature, 'bindings'>> {
  const names = Object.keys(schema.properties ?? {});
  const isAlone = areAlone(parameters);
  const bindings: ArgumentBinding[] = [];
  const faults: UnplacedFault[] = [];
  for (const facts of parameters) {
    const record = facts.records[0];
    const name = (record?.role === 'property' ? record.options.name : undefined) ?? facts.parsed?.name;
    const injected = injectedBinding(facts);
    if (injected !== undefined) bindings.push(injected);
    else if (record?.role === 'arguments') bindings.push({ from: 'arguments' });
    else if (name !== undefined && names.includes(name))
      bindings.push({ from: facts.parsed?.isRest ? 'rest' : 'property', name });
    else if (isAlone && record === undefined) bindings.push({ from: 'arguments' });
    else
      faults.push({
        parameter: name === undefined ? `#${facts.index}` : `${name} (#${facts.index})`,
        problem: 'the explicit schema has no property with its name',
        fix: `@Param({ name: '…' }) with one of ${names.join(', ') || 'the properties (there are none)'}, or @Args()`,
      });
  }
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, bindings };
}

/** Whether only one parameter receives arguments. */
function areAlone(parameters: readonly ParameterFacts[]): boolean {
  return parameters.filter((facts) => injectedBinding(facts) === undefined).length === 1;
}

function injectedBinding({ records, designType }: ParameterFacts): ArgumentBinding | undefined {
  const record = records[0];
  if (record?.role === 'context') return { from: 'context' };
  if (record !== undefined || !isInjectedType(designType)) return undefined;
  return { from: designType === AbortSignal ? 'signal' : 'context' };
}

function bindParameter(facts: ParameterFacts, isAlone: boolean): BoundParameter | UnplacedFault {
  const { records, designType, parsed, generated } = facts;
  const record = records[0];
  if (records.length > 1) {
    return {
      parameter: label(facts),
      problem: 'it has two decorators that exclude each other',
      fix: 'one of @Param, @Args and @Context',
    };
  }
  const injected = injectedBinding(facts);
  if (injected !== undefined) return { binding: injected };
  const resolved = resolveDesignType(designType);
  const dto = resolved.ok && resolved.type.kind === 'class' ? resolved.type.class : undefined;
  if (record?.role !== 'arguments') {
    if (dto !== undefined && record === undefined && isAlone && !parsed?.isRest)
      return { binding: { from: 'arguments' }, whole: { class: dto } };
    return bindProperty(facts, record?.role === 'property' ? record.options : {});
  }
  const [wrong] = optionFaults(record.options, ARGS);
  if (wrong !== undefined) return { parameter: label(facts), ...wrong };
  const binding = { from: 'arguments' } as const;
  if (dto !== undefined) return { binding, whole: { class: dto, groups: record.options.groups } };
  if (generated?.type.kind === 'described') return { binding, whole: { type: generated.type } };
  return {
    parameter: label(facts),
    problem: '@Args needs the type of the parameter to be a class at run time',
    causes: [
      'the class is imported with `import type`',
      'the type is an interface, which does not exist at run time',
      NO_METADATA,
    ],
    fix: '@Args() args: SomeDto',
  };
}

function bindProperty(facts: ParameterFacts, options: ParamOptions): BoundParameter | UnplacedFault {
  const { parsed, designType, generated } = facts;
  const name = options.name ?? parsed?.name;
  if (name === undefined) {
    return {
      parameter: label(facts),
      problem: 'its name cannot be read',
      causes: [
        'it is destructured',
        'the method is native or bound, or a decorator below @Tool has replaced it',
      ],
      fix: "@Param({ name: '…' }), which does not depend on the source; or @Tool next to the method, below other decorators",
    };
  }
  if (name === '__proto__')
    return { parameter: label(facts), problem: 'a property cannot be named __proto__', fix: 'another name' };
  const isRest = parsed?.isRest ?? false;
  const value = fromParameter({
    options: isRest ? restOptions(options, generated ? undefined : designType) : options,
    designType: isRest ? Array : designType,
    defaultValue: parsed?.defaultValue,
    generated,
  });
  if (!value.ok) return { ...value, parameter: label(facts) };
  const { type, nullable, keywords } = value;
  const { minItems = keywords.minItems } = 'schema' in type ? type.schema : {};
  const isOmissible = isRest ? !minItems : parsed?.hasDefault === true;
  const required = options.required ?? value.required ?? !isOmissible;
  return {
    binding: { from: isRest ? 'rest' : 'property', name },
    property: { name, type, nullable, keywords, required },
  };
}

/** The metadata of a rest parameter is its element's type. */
function restOptions(options: ParamOptions, designType: unknown): ParamOptions {
  if (options.items !== undefined || options.schema !== undefined) return options;
  const { type, ...others } = options;
  if (type !== undefined) return { ...others, items: type };
  const isKnown =
    typeof designType === 'function' &&
    ![Object, Array, Function, Promise].some((unknown) => unknown === designType);
  return isKnown ? { ...others, items: () => designType as ClassType } : options;
}

function label({ index, parsed }: ParameterFacts): string {
  return parsed?.name === undefined ? `#${index}` : `${parsed.name} (#${index})`;
}

/** The source of a parameter's value. */
type ArgumentBinding =
  | { readonly from: 'property'; readonly name: string }
  | { readonly from: 'rest'; readonly name: string }
  | { readonly from: 'arguments' }
  | { readonly from: 'context' }
  | { readonly from: 'signal' };

/** Calls a method of an instance with checked arguments, in the order of its parameters. */
type MethodCaller = (instance: object) => (args: JsonObject, context: ToolContext) => unknown;

type Reader = (args: JsonObject, context: ToolContext) => unknown;
type Methods = Readonly<Record<string | symbol, (...values: unknown[]) => unknown>>;

/**
 * Creates the caller of a method; decisions are made here once and not at each call. The method itself is looked up
 * at each call, so that a subclass or a test may replace it.
 */
function createCaller(key: string | symbol, bindings: readonly ArgumentBinding[]): MethodCaller {
  const readers = bindings.map(readerOf);
  const rest = bindings.findIndex(({ from }) => from === 'rest');
  if (rest >= 0)
    return (instance) => (args, context) => {
      const values = readers.map((read) => read(args, context));
      const others = (values[rest] as readonly unknown[] | undefined) ?? [];
      return (instance as Methods)[key]?.(...values.slice(0, rest), ...others);
    };
  const [a = NOTHING, b = NOTHING, c = NOTHING, d = NOTHING] = readers;
  // Copying few arguments to an array would cost as much as the call.
  switch (readers.length) {
    case 0:
      return (instance) => () => (instance as Methods)[key]?.();
    case 1:
      return (instance) => (args, context) => (instance as Methods)[key]?.(a(args, context));
    case 2:
      return (instance) => (args, context) =>
        (instance as Methods)[key]?.(a(args, context), b(args, context));
    case 3:
      return (instance) => (args, context) =>
        (instance as Methods)[key]?.(a(args, context), b(args, context), c(args, context));
    case 4:
      return (instance) => (args, context) =>
        (instance as Methods)[key]?.(a(args, context), b(args, context), c(args, context), d(args, context));
    default:
      return (instance) => (args, context) =>
        (instance as Methods)[key]?.(...readers.map((read) => read(args, context)));
  }
}

const NOTHING: Reader = () => undefined;

function readerOf(binding: ArgumentBinding): Reader {
  switch (binding.from) {
    case 'context':
      return (_args, context) => context;
    case 'signal':
      return (_args, context) => context.signal;
    case 'arguments':
      return (args) => args;
    default: {
      const { name } = binding;
      // An absent argument called `toString` must not be read from the prototype.
      if (name in Object.prototype) return (args) => (Object.hasOwn(args, name) ? args[name] : undefined);
      return (args) => args[name];
    }
  }
}

const ARGS = optionTable<ArgsOptions>('@Args', {
  groups: listOf(TEXT, "a list of groups of class-validator: ['create']"),
});
