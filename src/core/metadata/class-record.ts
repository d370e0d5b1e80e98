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

const SLOT = Symbol.for('toolwright.class-record');

/** All that decorators said about one class, and about that class only: nothing inherited. */
interface ClassRecord {
  toolset?: ToolsetOptions;
  /** `@Public` stands on the class. */
  isPublic?: boolean;
  /** What the generated file says of the class. */
  description?: ClassDescription;
  readonly methods: Map<string | symbol, ToolMethodRecord>;
  /** Apart from `methods`, because an instance and a static method may share a name. */
  readonly staticMethods: Map<string | symbol, ToolMethodRecord>;
  /** `@Param` on properties of a DTO class. */
  readonly properties: Map<string, ParamOptions>;
  /** Decorators that stand where they mean nothing; discovery reports them. */
  readonly misplaced: string[];
}

/** What a decorator said about one parameter of a method. */
export type ParameterRecord =
  | { readonly role: 'property'; readonly options: ParamOptions }
  | { readonly role: 'arguments'; readonly options: ArgsOptions }
  /** `isFilled`: not with the context itself, but by the framework around it (a parameter decorator of NestJS). */
  | { readonly role: 'context'; readonly isFilled?: boolean };

/** What the decorators said about one method: a record only; nothing is checked or resolved yet. */
interface ToolMethodRecord {
  readonly key: string | symbol;
  /** `@Tool`'s options; absent where only parameters were decorated. */
  tool?: ToolOptions;
  /** It is no tool of a model, but something else for MCP clients. */
  served?: ServedAs;
  /** `@Public` stands on the method. */
  isPublic?: boolean;
  /** What `@Tool` found there: a decorator above it may have put another function in its place. */
  method?: unknown;
  /** `@Tool` stands on a static method, which has no instance to inject into. */
  readonly isStatic: boolean;
  /** By position. More than one record at a position is a mistake that discovery reports. */
  readonly parameters: Map<number, readonly ParameterRecord[]>;
}

/** The class of a place that is decorated: that of the prototype, or the class itself where it is static. */
function classAt(target: unknown): ClassType {
  const found: unknown = typeof target === 'object' && target !== null ? target.constructor : target;
  if (typeof found === 'function' && found !== Object) return found as ClassType;
  throw new TypeError(
    `Decorators and describeClass need a class, and were given ${target === null ? 'null' : `a value of the type ${typeof target}`}. A class that is undefined is often part of a cycle: its file imports the generated file, or another that imports it.`,
  );
}

/**
 * The class's own record, made on first use. It lives in an own slot of the class, so that a subclass
 * never writes into its base and two copies of this package see the same record.
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

/** The class's own record if it has one; a base class's record is not looked at. */
export function readRecord(target: object): ClassRecord | undefined {
  return Object.hasOwn(target, SLOT) ? (target as { readonly [SLOT]: ClassRecord })[SLOT] : undefined;
}

/** The class and its bases that are classes themselves, the base-most first. */
export function lineage(target: ClassType): readonly ClassType[] {
  const chain: ClassType[] = [];
  let current: unknown = target;
  while (typeof current === 'function' && current !== Function.prototype) {
    chain.unshift(current as ClassType);
    current = Object.getPrototypeOf(current);
  }
  return chain;
}

/** What the nearest of a class and its bases says, where any of them says something. */
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

/** Every class whose own methods are tools that has been loaded so far. */
export function loadedToolClasses(): readonly ClassType[] {
  return [...toolClasses];
}

/** Every class with `@Param` on its own properties that has been loaded so far. */
export function loadedDtoClasses(): readonly ClassType[] {
  return [...dtoClasses];
}

let declared = 0;

/** How many classes and methods have been declared so far. */
export function declarations(): number {
  return declared;
}

/** Records what `@Toolset` said, and that the class has been loaded. */
export function recordToolset(target: ClassType, options: ToolsetOptions): void {
  const record = ownRecord(classAt(target));
  declared += 1;
  if (record.toolset === undefined) toolsets.push(target);
  record.toolset = options;
}

/** Where a decorator of a method or of its parameter stands: the prototype, or the class for static ones. */
interface MethodPlace {
  readonly target: object;
  readonly key: string | symbol;
}

/** Records what `@Tool` said, and the method on which it stands. */
export function recordTool(place: MethodPlace, options: ToolOptions, method?: unknown): void {
  if (typeof place.target === 'object') toolClasses.add(classAt(place.target));
  const record = methodRecord(place);
  declared += 1;
  record.tool = options;
  record.method = method;
}

/** Records what `@Prompt`, `@Resource` or `@Completion` said: a tool that is offered in another way. */
export function recordServed(
  place: MethodPlace,
  { title, ...options }: PromptOptions,
  { served, method }: { readonly served: ServedAs; readonly method: unknown },
): void {
  recordTool(
    place,
    { ...options, output: false, ...(title !== undefined && { annotations: { title } }) },
    method,
  );
  methodRecord(place).served = served;
}

/** Records that `@Public` stands on a class, or on a method of it. */
export function recordPublic(target: object, key: string | symbol | undefined): void {
  const record = key === undefined ? ownRecord(classAt(target)) : methodRecord({ target, key });
  record.isPublic = true;
}

/** Records what one decorator said about one parameter; without a key it is a constructor's. */
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

/** Records what `@Param` said about a property of a DTO class. */
export function recordProperty(prototype: object, key: string, options: ParamOptions): void {
  const owner = classAt(prototype);
  dtoClasses.add(owner);
  ownRecord(owner).properties.set(key, options);
}

/** Records what a generated file says of a class; a later word on the same class wins, part by part. */
export function recordDescription(target: ClassType, description: ClassDescription): void {
  const record = ownRecord(classAt(target));
  record.description = { ...record.description, ...description };
}

/** What was described of a class itself. */
export function readDescription(target: object): ClassDescription | undefined {
  return readRecord(target)?.description;
}

/** A method's record with the class that it was written in: names and metadata are read from there. */
export interface InheritedMethod {
  readonly record: ToolMethodRecord;
  readonly declaredIn: ClassType;
}

/**
 * The records of a class and of its bases. A subclass that redeclares a tool replaces the base's record
 * in the base's place; one that only overrides the method keeps the base's declaration.
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
 * Under TypeScript's standard decorators a decorator gets a context object where the older ones get a key,
 * and no metadata at all: nothing could be recorded.
 *
 * @throws TypeError with the compiler options to set.
 */
export function refuseStandardDecorators(decorator: string, second: unknown): void {
  if (typeof second !== 'object' || second === null || !('kind' in second)) return;
  throw new TypeError(
    `${decorator} needs "experimentalDecorators": true and "emitDecoratorMetadata": true in tsconfig.json; this file was compiled with standard decorators. A build tool that emits no decorator metadata (esbuild, tsx) needs the first alone, and the types from 'npx toolwright generate', whose file the application imports.`,
  );
}

/** What the nearest of a class and its bases says of a tool method. A method may be called `toString`. */
export function describedTool(target: ClassType, key: string | symbol): DescribedTool | undefined {
  if (typeof key !== 'string') return undefined;
  return nearest(target, (ancestor) => {
    const { tools } = readDescription(ancestor) ?? {};
    return tools !== undefined && Object.hasOwn(tools, key) ? tools[key] : undefined;
  });
}
