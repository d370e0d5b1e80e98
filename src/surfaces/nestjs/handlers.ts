import { type ArgumentMetadata, type ExecutionContext, Injectable } from '@nestjs/common';
import type { ContextId } from '@nestjs/core';
import type { ClassType, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import type { AuthorFault } from '../../core/errors/author-fault.js';
import {
  type InheritedMethod,
  lineage,
  type ParameterRecord,
  toolMethods,
} from '../../core/metadata/class-record.js';
import type { ArgumentBinding } from '../../tools/discovery/bind-parameters.js';
import { boundMethodOf } from '../../tools/discovery/discover-tools.js';
import { type PlannedTool, planToolset } from '../../tools/discovery/plan-toolset.js';
import {
  type DecoratedParameter,
  decoratedParameters,
  isController,
  pipeDefault,
  type ToolHost,
} from './nest-internals.js';

/** What is done with the value of a handler's parameter. */
interface TargetParameter {
  /** The metadata for pipes; contexts and signals have none, and no pipe sees them. */
  readonly metadata?: ArgumentMetadata;
  /** Pipes that stand on the parameter itself, as classes or instances. */
  readonly pipes?: readonly unknown[];
  /** Where its value is no argument of the model's, but read by a decorator. */
  read?(execution: ExecutionContext): unknown;
}

/** What the call of a tool comes down to in Nest's terms: a handler of a class that a module provides. */
export interface CallTarget extends ToolHost {
  /**
   * An object of the class that declares the handler. Enhancers are looked up through it, because the real
   * instance may be a proxy, a stand-in of a test, or not made yet.
   */
  readonly declared: object;
  /** What `getHandler()` gives: the method as its class declares it, with the metadata of its decorators. */
  readonly handler: HandlerFunction;
  /** Pipes that stand on the handler's parameters, as classes or instances. */
  readonly parameterPipes: readonly unknown[];
  /** No decorator of Nest's stands on any parameter: no pipe of its own, nothing to be read from the request. */
  readonly isUndecorated: boolean;
  /** Lays checked arguments out as the handler takes them. */
  layOut(args: unknown, context: ToolContext): readonly unknown[];
  /** The parameter that takes the value at a place. */
  parameterAt(index: number): TargetParameter;
  invoke(instance: object, values: readonly unknown[]): unknown;
}

/** A target and the injection context in which its call takes place. */
export interface TargetInContext {
  readonly target: CallTarget;
  readonly contextId: ContextId;
}

/** A method of a user's class. */
// biome-ignore lint/suspicious/noExplicitAny: a method of a user's class has any signature
type HandlerFunction = (...args: any[]) => any;

/** A tool method of a provider as the target of calls. */
export function providerTarget({ planned, method, parameters }: PlannedHandler, host: ToolHost): CallTarget {
  const { class: toolClass, key, bindings, call } = planned;
  // The prototype may name another class: where a class decorator has put a proxy around it, the class within,
  // which has not all of the metadata.
  const declared: object = Object.create(toolClass.prototype, { constructor: { value: toolClass } });
  const metadata = bindings.map((binding, index) =>
    metadataOf(binding, { type: designType(declared, key, index), decorated: parameters.get(index) }),
  );
  // Lays arguments out as the method takes them, and gives them back instead of running anything.
  const listed = call({ [key]: (...values: unknown[]) => values });
  return {
    declared,
    handler: declaredMethod(toolClass, method),
    parameterPipes: [...parameters.values()].flatMap(({ pipes }) => pipes),
    ...host,
    isUndecorated: parameters.size === 0,
    layOut: (args, context) => listed(args as JsonObject, context) as readonly unknown[],
    parameterAt(index) {
      // The elements of a rest parameter stand at its place and after it.
      const place = Math.min(index, bindings.length - 1);
      const parameter = parameters.get(place);
      const read = parameter && parameter.source !== 'model' ? parameter.read : undefined;
      return { metadata: metadata[place], pipes: parameter?.pipes, read };
    },
    invoke(instance, values) {
      const real: unknown = Reflect.get(instance, key);
      if (typeof real !== 'function') {
        throw new TypeError(`The provider of ${toolClass.name} has no method '${String(key)}'.`);
      }
      return real.apply(instance, values);
    },
  };
}

/**
 * What pipes are told of a parameter. Its type is `custom`, as of parameters with decorators of their own:
 * `ValidationPipe` leaves those alone, and the arguments have been checked already.
 */
function metadataOf(
  binding: ArgumentBinding,
  { type, decorated }: { readonly type: unknown; readonly decorated: DecoratedParameter | undefined },
): ArgumentMetadata | undefined {
  if (decorated?.source === 'call') return metadata(type, decorated.data);
  switch (binding.from) {
    case 'context':
    case 'signal':
      return undefined;
    case 'arguments':
      return metadata(type, undefined);
    default:
      return metadata(type, binding.name);
  }
}

function metadata(metatype: unknown, data: unknown): ArgumentMetadata {
  return { type: 'custom', metatype: metatype as ArgumentMetadata['metatype'], data: data as string };
}

function designType(declared: object, key: string | symbol, index: number): unknown {
  return Reflect.getMetadata('design:paramtypes', declared, key)?.[index];
}

/** Stands for the tools that no provider has: `getClass()` gives it where they are called. */
@Injectable()
export class RegisteredTools {}

/**
 * A tool that was registered as an object, as the target of calls. Decorators of Nest's on its class and on its
 * `execute` count as they do on a provider; of a tool that `discoverTools` made, those on class and method.
 */
export function registeredTarget(tool: ToolDefinition, host: ToolHost): CallTarget {
  return {
    ...handlerOf(tool, host),
    parameterPipes: [],
    ...host,
    isUndecorated: true,
    layOut: (args, context) => [args, context],
    parameterAt: (index) => (index === 0 ? { metadata: { type: 'custom' } } : {}),
    invoke: (_host, [args, context]) => Reflect.apply(tool.execute, tool, [args, context]),
  };
}

function handlerOf(tool: ToolDefinition, host: ToolHost): Pick<CallTarget, 'declared' | 'handler'> {
  const bound = boundMethodOf(tool);
  const method = bound && toolMethods(bound.class).find(({ record }) => record.key === bound.key);
  if (bound !== undefined && method !== undefined) {
    const declared: object = Object.create(bound.class.prototype, { constructor: { value: bound.class } });
    return { declared, handler: declaredMethod(bound.class, method) };
  }
  const isPlain = Object.getPrototypeOf(tool) === Object.prototype || tool.constructor === undefined;
  return { declared: isPlain ? host.wrapper.instance : tool, handler: tool.execute as HandlerFunction };
}

/**
 * The method whose decorators count. A subclass that only overrides a tool keeps its guards as it keeps the rest
 * of its declaration; Nest itself reads decorators from the overriding function alone.
 */
function declaredMethod(
  toolClass: ClassType,
  { declaredIn, record: { key } }: InheritedMethod,
): HandlerFunction {
  for (const current of lineage(toolClass).toReversed()) {
    const method: unknown = Object.getOwnPropertyDescriptor(current.prototype, key)?.value;
    if (typeof method !== 'function') continue;
    if (current === declaredIn || Reflect.getOwnMetadataKeys(method).length > 0)
      return method as HandlerFunction;
  }
  throw new TypeError(`${toolClass.name} has no method '${String(key)}'.`);
}

/** A tool of a provider, and what Nest's decorators say of its method's parameters. */
export interface PlannedHandler {
  readonly planned: PlannedTool;
  readonly method: InheritedMethod;
  readonly parameters: ReadonlyMap<number, DecoratedParameter>;
}

/** The tools of a provider's class, and everything that is wrong with its declarations. */
interface ProviderPlan {
  readonly handlers: readonly PlannedHandler[];
  readonly faults: readonly AuthorFault[];
  /** Generated descriptions that no longer fit the class. */
  readonly misfits: readonly AuthorFault[];
  /** What works and is probably not meant. */
  readonly warnings: readonly AuthorFault[];
}

/**
 * Understands the tools of a class as the plain discovery does, except that parameters which Nest's decorators
 * fill (`createParamDecorator`, `@Req()`) are not the model's: they are no part of the schema.
 */
export function planProvider(toolset: ClassType): ProviderPlan {
  const methods = toolMethods(toolset).map((method) => ({
    method,
    parameters: decoratedParameters(method.declaredIn, method.record.key),
  }));
  const { tools, faults, misfits, warnings } = planToolset(
    toolset,
    methods.map(({ method, parameters }) => withDecorated(method, parameters)),
  );
  const found = methods.map(({ method, parameters }) => decoratorFaults(toolset, method, parameters));
  return {
    misfits,
    warnings: [...warnings, ...found.flatMap(({ strayPaths }) => strayPaths)],
    faults: [...faults, ...found.flatMap(({ httpOnly }) => httpOnly)],
    handlers: tools.flatMap((planned) => {
      const of = methods.find(({ method }) => method.record.key === planned.key);
      return of ? [{ planned, ...of }] : [];
    }),
  };
}

const FILLED: readonly ParameterRecord[] = [{ role: 'context', isFilled: true }];

function withDecorated(
  { record, declaredIn }: InheritedMethod,
  decorated: ReadonlyMap<number, DecoratedParameter>,
): InheritedMethod {
  const parameters = new Map(record.parameters);
  const designTypes = Reflect.getMetadata('design:paramtypes', declaredIn.prototype, record.key);
  for (const [index, parameter] of decorated) {
    const records = parameters.get(index) ?? [];
    const completed =
      parameter.source === 'model'
        ? withPipeDefault({ decorated: parameter, designType: designTypes?.[index], records })
        : FILLED;
    if (completed.length > 0) parameters.set(index, completed);
  }
  return { declaredIn, record: { ...record, parameters } };
}

/** Decorators of Nest's that cannot be meant on a tool. */
function decoratorFaults(
  toolset: ClassType,
  { record }: InheritedMethod,
  decorated: ReadonlyMap<number, DecoratedParameter>,
) {
  const strayPaths: AuthorFault[] = [];
  const httpOnly: AuthorFault[] = [];
  const where = `${toolset.name}.${String(record.key)}`;
  for (const [index, { data, isOfPath, source }] of record.tool === undefined ? [] : decorated) {
    const parameter = `#${index}`;
    if (source === 'http') {
      const problem = 'its decorator reads what a tool call does not have';
      const fix = '@Req(), or a decorator of your own made with createParamDecorator';
      httpOnly.push({ where, parameter, problem, fix });
    }
    // `@Param('Customer id')` of Nest where that of this package was meant: its text would be lost.
    if (isOfPath === true && !record.parameters.has(index) && !isController(toolset)) {
      const text = data === undefined ? '' : JSON.stringify(data);
      const problem = `its @Param(${text}) comes from '@nestjs/common', which reads the path of a route, and ${toolset.name} is no controller; it describes nothing to the model`;
      strayPaths.push({
        where: `${where}, parameter ${parameter}`,
        problem,
        fix: "import { Param } from 'toolwright'",
      });
    }
  }
  return { strayPaths, httpOnly };
}

/** A parameter that a route gets from its request and a tool from its arguments. */
interface PipedParameter {
  readonly decorated: DecoratedParameter;
  readonly designType: unknown;
  /** What this package's decorators say of it. */
  readonly records: readonly ParameterRecord[];
}

/**
 * The records of a parameter with what its `DefaultValuePipe` says: it may be left out, because the pipe fills it
 * in. What the author says in `@Param` comes first. A parameter that takes the whole body is no property.
 */
function withPipeDefault({ decorated, designType, records }: PipedParameter): readonly ParameterRecord[] {
  const { pipes, data } = decorated;
  const filled = pipeDefault(pipes);
  const [record, ...others] = records;
  // A class takes all arguments; anything else that `@Query('page')` names is one of them.
  const isNamed = typeof data === 'string' && WITHOUT_SCHEMA.includes(designType);
  const isPart = isNamed || VALUES.has(designType);
  const isProperty = record === undefined ? isPart : record.role === 'property';
  if (filled === undefined || !isProperty) return records;
  const declared = record?.role === 'property' ? record.options : {};
  const options: ParamOptions = { required: false, ...offered(filled.value, designType), ...declared };
  return [{ role: 'property', options }, ...others];
}

const WITHOUT_SCHEMA: readonly unknown[] = [undefined, Object, Array, Date];

const VALUES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [String, 'string'],
  [Number, 'number'],
  [Boolean, 'boolean'],
]);

/** The pipe fills in anything; the model is told of what JSON and the parameter's type can say. */
function offered(value: unknown, designType: unknown): Pick<ParamOptions, 'default'> {
  const isOfType = typeof value === VALUES.get(designType);
  return isOfType && (typeof value !== 'number' || Number.isFinite(value)) ? { default: value } : {};
}
