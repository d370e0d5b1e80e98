import { DefaultValuePipe, type ExecutionContext, type Type } from '@nestjs/common';
import {
  CONTROLLER_WATERMARK,
  CUSTOM_ROUTE_ARGS_METADATA,
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PARAMTYPES_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
  SELF_DECLARED_DEPS_METADATA,
} from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import {
  type ApplicationConfig,
  type ContextId,
  ContextIdFactory,
  ModuleRef,
  type ModulesContainer,
} from '@nestjs/core';
import { ExternalExceptionFilterContext } from '@nestjs/core/exceptions/external-exception-filter-context.js';
import type { ExternalExceptionsHandler } from '@nestjs/core/exceptions/external-exceptions-handler.js';
import { GuardsConsumer, GuardsContextCreator } from '@nestjs/core/guards/index.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { STATIC_CONTEXT } from '@nestjs/core/injector/constants.js';
import type { NestContainer } from '@nestjs/core/injector/container.js';
import { Injector } from '@nestjs/core/injector/injector.js';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { Module } from '@nestjs/core/injector/module.js';
import { InterceptorsConsumer, InterceptorsContextCreator } from '@nestjs/core/interceptors/index.js';
import { PipesConsumer, PipesContextCreator } from '@nestjs/core/pipes/index.js';
import { REQUEST_CONTEXT_ID } from '@nestjs/core/router/request/request-constants.js';
import type { ClassType } from '../../core/contract/declaration.js';

/*
 * Everything that is used of NestJS beyond its documented API. test/parts/nestjs/nest-internals.test.ts detects changes
 * in new versions of Nest.
 */

export {
  ExternalExceptionFilterContext,
  type ExternalExceptionsHandler,
  GuardsConsumer,
  type InstanceWrapper,
  InterceptorsConsumer,
  PipesConsumer,
  /** Where Nest's router stores the injection context of a request. */
  REQUEST_CONTEXT_ID,
};

/** Whether there is one instance for all calls. */
export function isStatic(wrapper: InstanceWrapper): boolean {
  return wrapper.isDependencyTreeStatic() && !wrapper.isTransient;
}

/** Whether the instance exists. Request-scoped and transient providers count as existing: their class is enough. */
export function isMade(wrapper: InstanceWrapper): boolean {
  return !isStatic(wrapper) || wrapper.getInstanceByContextId(STATIC_CONTEXT).isResolved === true;
}

/** The provider or controller that serves calls, with its module. */
export interface ToolHost {
  readonly wrapper: InstanceWrapper<object>;
  readonly module: Module;
}

/** The instance for a call: the only one, or one created in the call's injection context. */
export async function instanceIn({ wrapper, module }: ToolHost, contextId: ContextId): Promise<object> {
  if (isStatic(wrapper)) return wrapper.instance;
  const modules = module.getProviderByKey<ModuleRef>(ModuleRef).instance;
  return modules.resolve<object>(wrapper.token as symbol, contextId, { strict: true });
}

/** The host of a provider that exactly one module has. */
export function hostOf(modules: ModulesContainer, provider: Type): ToolHost {
  for (const module of modules.values()) {
    const wrapper = module.providers.get(provider);
    if (wrapper !== undefined) return { wrapper: wrapper as ToolHost['wrapper'], module };
  }
  throw new TypeError('This application does not import ToolwrightModule.');
}

/** Nest destroys modules in the order of their distance from the root. */
export function destroyFirst(modules: ModulesContainer, type: Type): void {
  for (const module of modules.values()) if (module.metatype === type) module.distance = 0;
}

/** A separate context for one provider, and the outer one for all others. */
export function contextWithin(outer: ContextId, { token }: InstanceWrapper): ContextId {
  const own: ContextId = {
    ...ContextIdFactory.create(),
    getParent: (info) => (info.token === token ? own : (outer.getParent?.(info) ?? outer)),
  };
  return own;
}

/** A class given to a decorator such as `@UseGuards` or to a parameter's decorator, with its kind. */
interface EnhancerClass {
  readonly type: Type;
  readonly subtype: 'guard' | 'interceptor' | 'pipe' | 'filter';
}

const ENHANCER_KEYS = [
  [GUARDS_METADATA, 'guard'],
  [INTERCEPTORS_METADATA, 'interceptor'],
  [PIPES_METADATA, 'pipe'],
  [EXCEPTION_FILTERS_METADATA, 'filter'],
] as const;

/** Everything that decorators have put on classes and methods, as classes or instances. */
export function enhancersAt(
  places: readonly object[],
): readonly { readonly kind: EnhancerClass['subtype']; readonly enhancer: unknown }[] {
  return ENHANCER_KEYS.flatMap(([key, kind]) =>
    places.flatMap((place) =>
      ((Reflect.getMetadata(key, place) ?? []) as readonly unknown[]).map((enhancer) => ({ kind, enhancer })),
    ),
  );
}

/** Enhancer classes on classes and methods, and pipe classes on parameters. */
export function enhancerClasses(
  places: readonly object[],
  parameterPipes: readonly unknown[],
): readonly EnhancerClass[] {
  const pipes = parameterPipes.map((enhancer) => ({ kind: 'pipe', enhancer }) as const);
  // Enhancers that are instances need no injection.
  return [...enhancersAt(places), ...pipes].flatMap(({ kind, enhancer }) =>
    typeof enhancer === 'function' ? [{ type: enhancer as Type, subtype: kind }] : [],
  );
}

/** Creates enhancers from Nest's tables of an application. */
export class NestEnhancers<Filters extends ExternalExceptionFilterContext> {
  readonly guards: GuardsContextCreator;
  readonly interceptors: InterceptorsContextCreator;
  readonly pipes: PipesContextCreator;
  readonly filters: Filters;
  readonly #config: ApplicationConfig;
  readonly #injector = new Injector();

  constructor(
    modules: ModulesContainer,
    config: ApplicationConfig,
    filters: new (container: NestContainer, config: ApplicationConfig) => Filters,
  ) {
    // The creators only use its modules; the container itself cannot be injected.
    const container = { getModules: () => modules } as NestContainer;
    this.#config = config;
    this.guards = new GuardsContextCreator(container, config);
    this.interceptors = new InterceptorsContextCreator(container, config);
    this.pipes = new PipesContextCreator(container, config);
    this.filters = new filters(container, config);
  }

  /** Request-scoped global enhancers; Nest itself prepares them only for controllers. */
  globalScoped(): readonly InstanceWrapper[] {
    return this.globals().slice(3).flat() as InstanceWrapper[];
  }

  /** The lists of global enhancers, which Nest replaces or adds to. Request-scoped ones come last. */
  globals(): readonly (readonly unknown[])[] {
    const config = this.#config;
    return [
      config.getGlobalGuards(),
      config.getGlobalInterceptors(),
      config.getGlobalPipes(),
      config.getGlobalRequestGuards(),
      config.getGlobalRequestInterceptors(),
      config.getGlobalRequestPipes(),
      config.getGlobalRequestFilters(),
    ];
  }

  /** Adds an enhancer class to a module that did not find it at its provider. */
  async injectable(module: Module, { type, subtype }: EnhancerClass): Promise<InstanceWrapper> {
    const known = module.injectables.get(type);
    if (known !== undefined) return known;
    const added = module.addInjectable(type, subtype) as InstanceWrapper;
    await this.#injector.loadInjectable(added, module);
    return added;
  }

  /** Creates a call's enhancer in its injection context. */
  async load(wrapper: InstanceWrapper, contextId: ContextId, inquirer: InstanceWrapper): Promise<void> {
    const { host } = wrapper;
    if (host !== undefined) await this.#injector.loadInjectable(wrapper, host, contextId, inquirer);
  }
}

/** The execution context for the enhancers of a tool call. */
export function toolExecutionContext(
  args: unknown[],
  toolClass: unknown,
  handler: (...args: never[]) => unknown,
): ExecutionContext {
  const execution = new ExecutionContextHost(args, toolClass as Type, handler);
  execution.setType('tool');
  return execution;
}

/** A parameter with a decorator of Nest, and where a tool call gets its value. */
export interface DecoratedParameter {
  readonly data: unknown;
  /** Classes or instances, as given to the decorator. */
  readonly pipes: readonly unknown[];
  /**
   * `model`: one of the tool's arguments, like the body of a route; `http`: a tool call has no value for it; `call`: a
   * custom decorator (`createParamDecorator`) or `@Req()` reads it from the execution context.
   */
  readonly source: 'model' | 'http' | 'call';
  /** Nest's `@Param()`: a part of a route's path. */
  readonly isOfPath?: boolean;
  read(execution: ExecutionContext): unknown;
}

/** What Nest's parameter decorators record for a parameter, under a key that starts with the decorator's type. */
interface ParameterMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes?: readonly unknown[];
  readonly factory?: (data: unknown, execution: ExecutionContext) => unknown;
}

/** `@Payload()`, `@MessageBody()` and GraphQL's `@Args()` are recorded like `@Body()`. */
const FROM_MODEL = [RouteParamtypes.BODY, RouteParamtypes.QUERY, RouteParamtypes.PARAM];

/** The parameters of a method that have a decorator of Nest, by position. */
export function decoratedParameters(
  declaredIn: ClassType,
  key: string | symbol,
): ReadonlyMap<number, DecoratedParameter> {
  // If a class decorator returns a proxy, parameter decorators are recorded on the inner class.
  const within: object = declaredIn.prototype.constructor;
  const recorded: Readonly<Record<string, ParameterMetadata>> =
    Reflect.getMetadata(ROUTE_ARGS_METADATA, declaredIn, key) ??
    Reflect.getMetadata(ROUTE_ARGS_METADATA, within, key) ??
    {};
  return new Map(
    Object.entries(recorded).map(([type, metadata]) => [metadata.index, decoratedParameter(type, metadata)]),
  );
}

function decoratedParameter(
  type: string,
  { data, pipes = [], factory }: ParameterMetadata,
): DecoratedParameter {
  if (type.includes(CUSTOM_ROUTE_ARGS_METADATA))
    return { data, pipes, source: 'call', read: (execution) => factory?.(data, execution) };
  const kind = Number(type.split(':')[0]);
  const request = (execution: ExecutionContext): unknown => execution.switchToHttp().getRequest();
  if (kind === RouteParamtypes.REQUEST) return { data, pipes, source: 'call', read: request };
  const isOfPath = kind === RouteParamtypes.PARAM;
  return { data, pipes, source: FROM_MODEL.includes(kind) ? 'model' : 'http', isOfPath, read: request };
}

/** The value of a `DefaultValuePipe` among the pipes; `undefined` if there is none. */
export function pipeDefault(pipes: readonly unknown[]): { readonly value: unknown } | undefined {
  const pipe = pipes.find((candidate) => candidate instanceof DefaultValuePipe);
  return pipe && { value: Reflect.get(pipe, 'defaultValue') };
}

export function isController(candidate: ClassType): boolean {
  return Reflect.hasMetadata(CONTROLLER_WATERMARK, candidate);
}

/** The number of constructor parameters that Nest can inject. */
export function injectedParameters(candidate: ClassType): number {
  const types: readonly unknown[] = Reflect.getMetadata(PARAMTYPES_METADATA, candidate) ?? [];
  const named: readonly object[] = Reflect.getMetadata(SELF_DECLARED_DEPS_METADATA, candidate) ?? [];
  return Math.max(types.length, named.length);
}
