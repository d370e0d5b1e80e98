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
 * All that is used of NestJS beyond its documented interfaces. What a release of Nest changes of it shows in
 * test/parts/nestjs/nest-internals.test.ts.
 */

export {
  ExternalExceptionFilterContext,
  type ExternalExceptionsHandler,
  GuardsConsumer,
  type InstanceWrapper,
  InterceptorsConsumer,
  PipesConsumer,
};

/** Whether there is one instance for all calls. */
export function isStatic(wrapper: InstanceWrapper): boolean {
  return wrapper.isDependencyTreeStatic() && !wrapper.isTransient;
}

/** What is made per request or per call is never there; it is known by its class. */
export function isMade(wrapper: InstanceWrapper): boolean {
  return !isStatic(wrapper) || wrapper.getInstanceByContextId(STATIC_CONTEXT).isResolved === true;
}

/** The provider or controller that serves calls, and the module that has it. */
export interface ToolHost {
  readonly wrapper: InstanceWrapper<object>;
  readonly module: Module;
}

/** The instance that serves a call: the one there is, or one made in the call's injection context. */
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
  throw new TypeError('ToolwrightModule is no part of this application.');
}

/** Nest destroys modules in the order of their distance from the root. */
export function destroyFirst(modules: ModulesContainer, type: Type): void {
  for (const module of modules.values()) if (module.metatype === type) module.distance = 0;
}

/** Whether an injection context stands on a request, as Nest's router leaves it there. */
export function hasContextId(request: object): boolean {
  return REQUEST_CONTEXT_ID in request;
}

/** Leaves the injection context of a request where Nest's router would, so that whoever asks next gets the same. */
export function keepContextId(request: object, contextId: ContextId): void {
  Object.defineProperty(request, REQUEST_CONTEXT_ID, { value: contextId });
}

/** A context of its own for one provider, and the outer one for all others. */
export function contextWithin(outer: ContextId, { token }: InstanceWrapper): ContextId {
  const own: ContextId = {
    ...ContextIdFactory.create(),
    getParent: (info) => (info.token === token ? own : (outer.getParent?.(info) ?? outer)),
  };
  return own;
}

/** A class given to `@UseGuards` and its like or to a parameter's decorator, and what it is. */
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

/** All that decorators have put on a class or a method, as classes or instances. */
export function enhancersAt(
  places: readonly object[],
): readonly { readonly kind: EnhancerClass['subtype']; readonly enhancer: unknown }[] {
  return ENHANCER_KEYS.flatMap(([key, kind]) =>
    places.flatMap((place) =>
      ((Reflect.getMetadata(key, place) ?? []) as readonly unknown[]).map((enhancer) => ({ kind, enhancer })),
    ),
  );
}

/** The enhancer classes that decorators have put on a class or a method, and pipes that stand on its parameters. */
export function enhancerClasses(
  places: readonly object[],
  parameterPipes: readonly unknown[],
): readonly EnhancerClass[] {
  const pipes = parameterPipes.map((enhancer) => ({ kind: 'pipe', enhancer }) as const);
  // Enhancers that were given as instances need nothing.
  return [...enhancersAt(places), ...pipes].flatMap(({ kind, enhancer }) =>
    typeof enhancer === 'function' ? [{ type: enhancer as Type, subtype: kind }] : [],
  );
}

/** Nest's tables of an application, and what makes enhancers out of them. */
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
    // The creators ask it for its modules and for nothing else; the container itself cannot be injected.
    const container = { getModules: () => modules } as NestContainer;
    this.#config = config;
    this.guards = new GuardsContextCreator(container, config);
    this.interceptors = new InterceptorsContextCreator(container, config);
    this.pipes = new PipesContextCreator(container, config);
    this.filters = new filters(container, config);
  }

  /** Global enhancers that are made per request; Nest itself prepares them for controllers only. */
  globalScoped(): readonly InstanceWrapper[] {
    return this.globals().slice(3).flat() as InstanceWrapper[];
  }

  /** The lists of global enhancers: Nest replaces them or adds to them. Those made per request come last. */
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

  /** Makes an enhancer class known to a module that did not see it at its provider. */
  async injectable(module: Module, { type, subtype }: EnhancerClass): Promise<InstanceWrapper> {
    const known = module.injectables.get(type);
    if (known !== undefined) return known;
    const added = module.addInjectable(type, subtype) as InstanceWrapper;
    await this.#injector.loadInjectable(added, module);
    return added;
  }

  /** Makes the enhancer that a call needs, in its injection context. */
  async load(wrapper: InstanceWrapper, contextId: ContextId, inquirer: InstanceWrapper): Promise<void> {
    const { host } = wrapper;
    if (host !== undefined) await this.#injector.loadInjectable(wrapper, host, contextId, inquirer);
  }
}

/** What the enhancers of a tool call are given. */
export function toolExecutionContext(
  args: unknown[],
  toolClass: unknown,
  handler: (...args: never[]) => unknown,
): ExecutionContext {
  const execution = new ExecutionContextHost(args, toolClass as Type, handler);
  execution.setType('tool');
  return execution;
}

/** A parameter with a decorator of Nest's, and what a tool call has for it. */
export interface DecoratedParameter {
  readonly data: unknown;
  /** Classes or instances, as they were given to the decorator. */
  readonly pipes: readonly unknown[];
  /**
   * `model`: it is one of the tool's arguments, as the body of a route is; `http`: a tool call has nothing for it;
   * `call`: a custom decorator (`createParamDecorator`) or `@Req()` reads it from the execution context.
   */
  readonly source: 'model' | 'http' | 'call';
  /** `@Param()` of Nest: a part of a route's path. */
  readonly isOfPath?: boolean;
  read(execution: ExecutionContext): unknown;
}

/** What Nest's parameter decorators record of one parameter, under a key that begins with the decorator's type. */
interface ParameterMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes?: readonly unknown[];
  readonly factory?: (data: unknown, execution: ExecutionContext) => unknown;
}

/** `@Payload()`, `@MessageBody()` and GraphQL's `@Args()` are recorded as `@Body()` is. */
const FROM_MODEL = [RouteParamtypes.BODY, RouteParamtypes.QUERY, RouteParamtypes.PARAM];

/** The parameters of a method that carry a decorator of Nest's, by position. */
export function decoratedParameters(
  declaredIn: ClassType,
  key: string | symbol,
): ReadonlyMap<number, DecoratedParameter> {
  // Parameter decorators know only the class within, where a class decorator has put a proxy around it.
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

/** What a `DefaultValuePipe` among some pipes fills in; `undefined` where there is none. */
export function pipeDefault(pipes: readonly unknown[]): { readonly value: unknown } | undefined {
  const pipe = pipes.find((candidate) => candidate instanceof DefaultValuePipe);
  return pipe && { value: Reflect.get(pipe, 'defaultValue') };
}

export function isController(candidate: ClassType): boolean {
  return Reflect.hasMetadata(CONTROLLER_WATERMARK, candidate);
}

/** How many parameters of a constructor Nest knows what to inject for. */
export function injectedParameters(candidate: ClassType): number {
  const types: readonly unknown[] = Reflect.getMetadata(PARAMTYPES_METADATA, candidate) ?? [];
  const named: readonly object[] = Reflect.getMetadata(SELF_DECLARED_DEPS_METADATA, candidate) ?? [];
  return Math.max(types.length, named.length);
}
