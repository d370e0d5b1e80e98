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
import { boundMethodOf } from '../../tools/discovery/bound-method.js';
import { type PlannedTool, planToolset } from '../../tools/discovery/plan-toolset.js';
import {
  type DecoratedParameter,
  decoratedParameters,
  isController,
  pipeDefault,
  type ToolHost,
} from './nest-internals.js';

/** How to process the value of a handler's parameter. */
interface TargetParameter {
  /** Metadata for pipes; absent for contexts and signals, which pipes do not process. */
  readonly metadata?: ArgumentMetadata;
  /** Pipes of the parameter itself, as classes or instances. */
  readonly pipes?: readonly unknown[];
  /** Reads the value if it comes from a decorator, not from the model. */
  read?(execution: ExecutionContext): unknown;
}

/** A tool as a handler in Nest's terms: a method of a class that a module provides. */
export interface CallTarget extends ToolHost {
  /**
   * An object of the class that declares the handler, to look up enhancers. The real instance may be a proxy, a mock,
   * or not exist yet.
   */
  readonly declared: object;
  /** The result of `getHandler()`: the declared method, with the metadata of its decorators. */
  readonly handler: HandlerFunction;
  /** Pipes of the handler's parameters, as classes or instances. */
  readonly parameterPipes: readonly unknown[];
  /** No parameter has a decorator of Nest: no pipes, and no values to read from the request. */
  readonly isUndecorated: boolean;
  /** Converts validated arguments to the handler's parameters. */
  layOut(args: unknown, context: ToolContext): readonly unknown[];
  /** The parameter that receives the value at an index. */
  parameterAt(index: number): TargetParameter;
  invoke(instance: object, values: readonly unknown[]): unknown;
}

/** A target with the injection context of its call. */
export interface TargetInContext {
  readonly target: CallTarget;
  readonly contextId: ContextId;
}

/** A method of a user's class. */
// biome-ignore lint/suspicious/noExplicitAny: a method of a user's class has any signature
type HandlerFunction = (...args: any[]) => any;

/** A provider's tool method as a call target. */
export function providerTarget({ planned, method, parameters }: PlannedHandler, host: ToolHost): CallTarget {
  const { class: toolClass, key, bindings, call } = planned;
  // If a class decorator returns a proxy, the prototype's constructor is the inner class, which lacks metadata.
  const declared: object = Object.create(toolClass.prototype, { constructor: { value: toolClass } });
  // The type `custom` makes `ValidationPipe` skip the value, which is validated already.
  const metadata = bindings.map((binding, index): ArgumentMetadata | undefined => {
    const metatype = Reflect.getMetadata('design:paramtypes', declared, key)?.[index];
    const decorated = parameters.get(index);
    if (decorated?.source === 'call') return { type: 'custom', metatype, data: decorated.data as string };
    if (binding.from === 'context' || binding.from === 'signal') return undefined;
    const data = binding.from === 'arguments' ? undefined : binding.name;
    return { type: 'custom', metatype, data: data as string };
  });
  // Returns the positional arguments instead of calling the method.
  const listed = call({ [key]: (...values: unknown[]) => values });
  return {
    declared,
    handler: declaredMethod(toolClass, method),
    parameterPipes: [...parameters.values()].flatMap(({ pipes }) => pipes),
    ...host,
    isUndecorated: parameters.size === 0,
    layOut: (args, context) => listed(args as JsonObject, context) as readonly unknown[],
    parameterAt(index) {
      // The elements of a rest parameter start at its index.
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

/** The host of tools that no provider has; `getClass()` returns it in their calls. */
@Injectable()
export class RegisteredTools {}

/**
 * A registered tool object as a call target. Nest's decorators on its class and on `execute` apply as on a provider;
 * for a tool of `discoverTools`, those on its class and method apply.
 */
export function registeredTarget(tool: ToolDefinition, host: ToolHost): CallTarget {
  const bound = boundMethodOf(tool);
  const method = bound && toolMethods(bound.class).find(({ record }) => record.key === bound.key);
  const isPlain = Object.getPrototypeOf(tool) === Object.prototype || tool.constructor === undefined;
  let declared: object = isPlain ? host.wrapper.instance : tool;
  let handler = tool.execute as HandlerFunction;
  if (bound !== undefined && method !== undefined) {
    declared = Object.create(bound.class.prototype, { constructor: { value: bound.class } });
    handler = declaredMethod(bound.class, method);
  }
  return {
    declared,
    handler,
    parameterPipes: [],
    ...host,
    isUndecorated: true,
    layOut: (args, context) => [args, context],
    parameterAt: (index) => (index === 0 ? { metadata: { type: 'custom' } } : {}),
    invoke: (_host, [args, context]) => Reflect.apply(tool.execute, tool, [args, context]),
  };
}

/**
 * The method whose decorators apply. An overriding method without decorators inherits the guards, as it inherits the
 * rest of the declaration; Nest itself would read only the overriding function.
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

/** A provider's tool, with Nest's decorators on its method's parameters. */
export interface PlannedHandler {
  readonly planned: PlannedTool;
  readonly method: InheritedMethod;
  readonly parameters: ReadonlyMap<number, DecoratedParameter>;
}

/** The tools of a provider's class, and all faults of its declarations. */
interface ProviderPlan {
  readonly handlers: readonly PlannedHandler[];
  readonly faults: readonly AuthorFault[];
  /** Generated descriptions that no longer match the class. */
  readonly misfits: readonly AuthorFault[];
  /** Probable mistakes that do not prevent the tools from working. */
  readonly warnings: readonly AuthorFault[];
}

/**
 * Reads the tools of a class as the plain discovery does. Parameters that Nest's decorators fill
 * (`createParamDecorator`, `@Req()`) are not part of the schema.
 */
export function planProvider(toolset: ClassType): ProviderPlan {
  const methods = toolMethods(toolset).map((method) => ({
    method,
    parameters: decoratedParameters(method.declaredIn, method.record.key),
  }));
  const { tools, faults, misfits, warnings } = planToolset(
    toolset,
    methods.map(({ method: { record, declaredIn }, parameters: decorated }) => {
      const parameters = new Map(record.parameters);
      const designTypes = Reflect.getMetadata('design:paramtypes', declaredIn.prototype, record.key);
      for (const [index, parameter] of decorated) {
        const records = parameters.get(index) ?? [];
        const completed =
          parameter.source === 'model' ? withPipeDefault(parameter, designTypes?.[index], records) : FILLED;
        if (completed.length > 0) parameters.set(index, completed);
      }
      return { declaredIn, record: { ...record, parameters } };
    }),
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

/** Faults of Nest's decorators that make no sense on a tool. */
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
      const problem = 'its decorator reads something that a tool call does not have';
      const fix = '@Req(), or your own decorator, made with createParamDecorator';
      httpOnly.push({ where, parameter, problem, fix });
    }
    // Nest's `@Param('Customer id')` instead of this package's: its text would be lost.
    if (isOfPath === true && !record.parameters.has(index) && !isController(toolset)) {
      const text = data === undefined ? '' : JSON.stringify(data);
      const problem = `its @Param(${text}) comes from '@nestjs/common', which reads the path of a route, but ${toolset.name} is not a controller; it does not describe the parameter to the model`;
      strayPaths.push({
        where: `${where}, parameter ${parameter}`,
        problem,
        fix: "import { Param } from 'toolwright'",
      });
    }
  }
  return { strayPaths, httpOnly };
}

/**
 * The records of this package's decorators for a parameter that a route reads from its request, and a tool from its
 * arguments. It is optional if a `DefaultValuePipe` fills it. Options in `@Param` take precedence. A parameter for the
 * whole body is not a property.
 */
function withPipeDefault(
  { pipes, data }: DecoratedParameter,
  designType: unknown,
  records: readonly ParameterRecord[],
): readonly ParameterRecord[] {
  const filled = pipeDefault(pipes);
  const [record, ...others] = records;
  // A parameter with a class type takes all arguments; one that `@Query('page')` names takes one of them.
  const isNamed = typeof data === 'string' && WITHOUT_SCHEMA.includes(designType);
  const isPart = isNamed || VALUES.has(designType);
  const isProperty = record === undefined ? isPart : record.role === 'property';
  if (filled === undefined || !isProperty) return records;
  const declared = record?.role === 'property' ? record.options : {};
  const { value } = filled;
  // The model is offered a default of the parameter's type that is valid JSON.
  const isOffered =
    typeof value === VALUES.get(designType) && (typeof value !== 'number' || Number.isFinite(value));
  const options: ParamOptions = { required: false, ...(isOffered && { default: value }), ...declared };
  return [{ role: 'property', options }, ...others];
}

const WITHOUT_SCHEMA: readonly unknown[] = [undefined, Object, Array, Date];

const VALUES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [String, 'string'],
  [Number, 'number'],
  [Boolean, 'boolean'],
]);
