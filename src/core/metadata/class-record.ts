import type {
  ArgsOptions,
  ClassDescription,
  ClassType,
  DescribedTool,
  ParamOptions,
  PromptOptions,
  ServedAs,
  ToolOptions,
  ToolsetOptions,
} from '../contract/declaration.js';

// Decorators load this file, so it imports only types.
const SLOT = Symbol.for('toolwright.class-record');

/** Everything that decorators recorded about one class, without inherited records. */
interface ClassRecord {
  toolset?: ToolsetOptions;
  /** The class has `@Public`. */
  isPublic?: boolean;
  /** The class's description in the generated file. */
  description?: ClassDescription;
  readonly methods: Map<string | symbol, ToolMethodRecord>;
  /** Separate from `methods`, because an instance method and a static method may share a name. */
  readonly staticMethods: Map<string | symbol, ToolMethodRecord>;
  /** `@Param` on properties of a DTO class. */
  readonly properties: Map<string, ParamOptions>;
  /** Decorators in places where they have no meaning; discovery reports them. */
  readonly misplaced: string[];
}

/** A decorator's record of a method parameter. */
export type ParameterRecord =
  | { readonly role: 'property'; readonly options: ParamOptions }
  | { readonly role: 'arguments'; readonly options: ArgsOptions }
  /** `isFilled`: the host framework injects the value, and not the context (a parameter decorator of NestJS). */
  | { readonly role: 'context'; readonly isFilled?: boolean };

/** What a decorator makes of a method. */
export type DeclaredKind = 'tool' | ServedAs['kind'];

/** The decorators' record of a method; nothing is checked or resolved yet. */
interface ToolMethodRecord {
  readonly key: string | symbol;
  /** `@Tool`'s options; absent if only parameters were decorated. */
  tool?: ToolOptions;
  /** Set if it is not a tool for models, but another feature for MCP clients. */
  served?: ServedAs;
  /** The options of `@Prompt` or `@Resource` as they were written. */
  given?: unknown;
  /** One for each of `@Tool`, `@Prompt`, `@Resource` and `@Completion` on the method; more than one is a mistake. */
  kinds?: readonly DeclaredKind[];
  /** The method has `@Public`. */
  isPublic?: boolean;
  /** The method that `@Tool` found: a decorator above it may have replaced it. */
  method?: unknown;
  /** `@Tool` is on a static method, which has no instance to inject into. */
  readonly isStatic: boolean;
  /** By position. Discovery reports several records at one position as a mistake. */
  readonly parameters: Map<number, readonly ParameterRecord[]>;
}

/** The class of a decorated member: that of the prototype, or the class itself if the member is static. */
function classAt(target: unknown): ClassType {
  const found: unknown = typeof target === 'object' && target !== null ? target.constructor : target;
  if (typeof found === 'function' && found !== Object) return found as ClassType;
  throw new TypeError(
    `Decorators and describeClass need a class, but received ${target === null ? 'null' : `a value of the type ${typeof target}`}. A class that is undefined is often part of an import cycle: its file imports the generated file, or another file that imports it.`,
  );
}

/**
 * The class's own record, created on first use. It is an own property of the class: a subclass never changes its
 * base, and two copies of this package share the record.
 */
function ownRecord(target: object): ClassRecord {
  const existing = readRecord(target);
  if (existing !== undefined) return existing;
  const record: ClassRecord = {
    methods: new Map(),
    staticMethods: new Map(),
    properties: new Map(),
    misplaced: [],
  };
  Object.defineProperty(target, SLOT, { value: record });
  return record;
}

/** The class's own record, without those of its bases. */
export function readRecord(target: object): ClassRecord | undefined {
  return Object.hasOwn(target, SLOT) ? (target as { readonly [SLOT]: ClassRecord })[SLOT] : undefined;
}

export function isClass(value: object): value is ClassType {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

/** The class and its base classes, starting with the topmost base. */
export function lineage(target: ClassType): readonly ClassType[] {
  const chain: ClassType[] = [];
  let current: unknown = target;
  while (typeof current === 'function' && current !== Function.prototype) {
    chain.unshift(current as ClassType);
    current = Object.getPrototypeOf(current);
  }
  return chain;
}

/** The first value in a class and its bases, nearest first. */
export function nearest<Said>(
  target: ClassType,
  read: (ancestor: ClassType) => Said | undefined,
): Said | undefined {
  for (const ancestor of lineage(target).toReversed()) {
    const said = read(ancestor);
    if (said !== undefined) return said;
  }
  return undefined;
}

const toolsets: ClassType[] = [];
const toolClasses = new Set<ClassType>();
const dtoClasses = new Set<ClassType>();

/** Every `@Toolset` class loaded so far, in the order of loading. */
export function loadedToolsets(): readonly ClassType[] {
  return [...toolsets];
}

/** Every class loaded so far whose own methods are tools. */
export function loadedToolClasses(): readonly ClassType[] {
  return [...toolClasses];
}

/** Every class loaded so far with `@Param` on its own properties. */
export function loadedDtoClasses(): readonly ClassType[] {
  return [...dtoClasses];
}

let declared = 0;

/** The number of classes and methods declared so far. */
export function declarations(): number {
  return declared;
}

/** Records `@Toolset` and its class. */
export function recordToolset(target: ClassType, options: ToolsetOptions): void {
  const record = ownRecord(classAt(target));
  declared += 1;
  if (record.toolset === undefined) toolsets.push(target);
  record.toolset = options;
}

/** The position of a decorator of a method or its parameter: the prototype, or the class for static methods. */
interface MethodPlace {
  readonly target: object;
  readonly key: string | symbol;
}

/** Records `@Tool` and its method. */
export function recordTool(
  place: MethodPlace,
  options: ToolOptions,
  { method, kind = 'tool' }: { readonly method?: unknown; readonly kind?: DeclaredKind } = {},
): void {
  if (typeof place.target === 'object') toolClasses.add(classAt(place.target));
  const record = methodRecord(place);
  declared += 1;
  record.tool = options;
  record.method = method;
  record.kinds = [...(record.kinds ?? []), kind];
}

/** Records `@Prompt`, `@Resource` or `@Completion`: a tool that is offered in another way. */
export function recordServed(
  place: MethodPlace,
  { title, ...options }: PromptOptions,
  { served, given, method }: { readonly served: ServedAs; readonly given: unknown; readonly method: unknown },
): void {
  recordTool(
    place,
    { ...options, output: false, ...(title !== undefined && { annotations: { title } }) },
    { method, kind: served.kind },
  );
  Object.assign(methodRecord(place), { served, given });
}

/** Records `@Public` on a class or a method. */
export function recordPublic(target: object, key: string | symbol | undefined): void {
  const record = key === undefined ? ownRecord(classAt(target)) : methodRecord({ target, key });
  record.isPublic = true;
}

/** Records a decorator of a parameter; without a key, it is a parameter of the constructor. */
export function recordParameter(
  { target, key, index }: Omit<MethodPlace, 'key'> & { key: string | symbol | undefined; index: number },
  parameter: ParameterRecord,
): void {
  if (key === undefined) {
    ownRecord(classAt(target)).misplaced.push(`constructor parameter #${index}`);
    return;
  }
  const { parameters } = methodRecord({ target, key });
  parameters.set(index, [...(parameters.get(index) ?? []), parameter]);
}

function methodRecord({ target, key }: MethodPlace): ToolMethodRecord {
  const { methods, staticMethods } = ownRecord(classAt(target));
  const isStatic = typeof target === 'function';
  const records = isStatic ? staticMethods : methods;
  const record = records.get(key) ?? { key, isStatic, parameters: new Map() };
  records.set(key, record);
  return record;
}

/** Records `@Param` on a property of a DTO class. */
export function recordProperty(prototype: object, key: string, options: ParamOptions): void {
  const owner = classAt(prototype);
  dtoClasses.add(owner);
  ownRecord(owner).properties.set(key, options);
}

/** Records a class's description in a generated file; each part replaces an earlier description of the same class. */
export function recordDescription(target: ClassType, description: ClassDescription): void {
  const record = ownRecord(classAt(target));
  record.description = { ...record.description, ...description };
}

/** The description of the class itself. */
export function readDescription(target: object): ClassDescription | undefined {
  return readRecord(target)?.description;
}

/** A method's record with the class that declares it: names and metadata are read from that class. */
export interface InheritedMethod {
  readonly record: ToolMethodRecord;
  readonly declaredIn: ClassType;
}

/**
 * The records of a class and its bases. If a subclass redeclares a tool, it replaces the base's record at the same
 * position. If it only overrides the method, the base's declaration applies.
 */
export function toolMethods(target: ClassType): readonly InheritedMethod[] {
  const methods = new Map<string | symbol, InheritedMethod>();
  const statics: InheritedMethod[] = [];
  for (const declaredIn of lineage(target)) {
    const records = readRecord(declaredIn);
    if (records === undefined) continue;
    for (const [key, record] of records.methods)
      if (record.tool !== undefined || !methods.has(key)) methods.set(key, { record, declaredIn });
    for (const record of records.staticMethods.values()) statics.push({ record, declaredIn });
  }
  return [...methods.values(), ...statics];
}

/**
 * With TypeScript's standard decorators, a decorator receives a context object instead of a key, and no metadata:
 * nothing could be recorded.
 *
 * @throws TypeError with the compiler options to set.
 */
export function refuseStandardDecorators(decorator: string, second: unknown): void {
  if (typeof second !== 'object' || second === null || !('kind' in second)) return;
  throw new TypeError(
    `${decorator} needs "experimentalDecorators": true and "emitDecoratorMetadata": true in tsconfig.json; this file was compiled with standard decorators. A build tool that emits no decorator metadata (esbuild, tsx) needs only the first option, and the types from 'npx toolwright generate': the application imports the generated file.`,
  );
}

/** The nearest description of a tool method in a class and its bases. A method may be called `toString`. */
export function describedTool(target: ClassType, key: string | symbol): DescribedTool | undefined {
  if (typeof key !== 'string') return undefined;
  return nearest(target, (ancestor) => {
    const { tools } = readDescription(ancestor) ?? {};
    return tools !== undefined && Object.hasOwn(tools, key) ? tools[key] : undefined;
  });
}
