import type { CanActivate, NestInterceptor, PipeTransform } from '@nestjs/common';
import type { ApplicationConfig, ContextId, ModulesContainer } from '@nestjs/core';
import type { ExternalExceptionsHandler } from '@nestjs/core/exceptions/external-exceptions-handler.js';
import { GuardsContextCreator } from '@nestjs/core/guards/index.js';
import type { NestContainer } from '@nestjs/core/injector/container.js';
import { Injector } from '@nestjs/core/injector/injector.js';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import { InterceptorsContextCreator } from '@nestjs/core/interceptors/index.js';
import { PipesContextCreator } from '@nestjs/core/pipes/index.js';
import type { CallTarget, TargetInContext } from './call-target.js';
import { enhancerClasses } from './enhancer-classes.js';
import { RequestInterceptor } from './request-interceptor.js';
import { WatchedFilters } from './watched-filters.js';
import { watchedInterceptor } from './watched-interceptors.js';

/** Where enhancers come from: Nest's own tables. */
export interface EnhancerSources {
  readonly modules: ModulesContainer;
  readonly config: ApplicationConfig;
}

/** What stands around the calls of a target, in Nest's order: global, of its class, of its method. */
export interface SurroundingEnhancers {
  readonly guards: CanActivate[];
  readonly interceptors: NestInterceptor[];
  readonly pipes: PipeTransform[];
}

/** Enhancers that are the same for every call, and the lists of global ones when they were looked up. */
interface Standing {
  readonly enhancers: SurroundingEnhancers;
  readonly globals: readonly GlobalList[];
}

/** Nest replaces the list or adds to it. */
interface GlobalList {
  readonly list: readonly unknown[];
  readonly length: number;
}

/**
 * The guards, interceptors, pipes and exception filters of a target, by Nest's own creators. Where none of them
 * is made per request, they are looked up once; again where `useGlobalGuards` and its like came after that.
 */
export class Enhancers {
  readonly #config: ApplicationConfig;
  readonly #injector = new Injector();
  readonly #guards: GuardsContextCreator;
  readonly #interceptors: InterceptorsContextCreator;
  readonly #pipes: PipesContextCreator;
  readonly #filters: WatchedFilters;
  readonly #known = new WeakMap<CallTarget, Promise<readonly InstanceWrapper[]>>();
  readonly #standing = new WeakMap<CallTarget, Standing>();

  constructor({ modules, config }: EnhancerSources) {
    // The creators ask it for its modules and for nothing else; the container itself cannot be injected.
    const container = { getModules: () => modules } as NestContainer;
    this.#config = config;
    this.#guards = new GuardsContextCreator(container, config);
    this.#interceptors = new InterceptorsContextCreator(container, config);
    this.#pipes = new PipesContextCreator(container, config);
    this.#filters = new WatchedFilters(container, config);
  }

  /** What stands around a call in its injection context. Rejects where injection fails. */
  around(at: TargetInContext): SurroundingEnhancers | Promise<SurroundingEnhancers> {
    const standing = this.#standing.get(at.target);
    if (standing !== undefined && isUnchanged(standing.globals, this.#globals())) return standing.enhancers;
    return this.#lookUp(at);
  }

  /**
   * Makes the enhancer classes of a target known to its module. Nest skips one that it did not see at the
   * provider (which a factory made, or which is a registered tool), and a guard must not be skipped.
   */
  known(target: CallTarget): Promise<readonly InstanceWrapper[]> {
    let known = this.#known.get(target);
    if (known === undefined) {
      known = this.#makeKnown(target);
      this.#known.set(target, known);
    }
    return known;
  }

  /** Pipes that stand on a parameter. */
  pipesOf(pipes: readonly unknown[], { target, contextId }: TargetInContext): PipeTransform[] {
    this.#pipes.setModuleContext(target.module.token);
    return this.#pipes.createConcreteContext([...pipes] as PipeTransform[], contextId, target.wrapper.id);
  }

  filters(at: TargetInContext): ExternalExceptionsHandler {
    return this.#filters.create(...lookUp(at));
  }

  async #lookUp(at: TargetInContext): Promise<SurroundingEnhancers> {
    const { target, contextId } = at;
    const globals = this.#globals().map((list) => ({ list, length: list.length }));
    const wrappers = [...this.#globalScoped(), ...(await this.known(target))];
    await Promise.all(
      wrappers.map(async (wrapper) => {
        const { host } = wrapper;
        if (host !== undefined) await this.#injector.loadInjectable(wrapper, host, contextId, target.wrapper);
      }),
    );
    const enhancers: SurroundingEnhancers = {
      guards: this.#guards.create(...lookUp(at)),
      interceptors: this.#interceptors
        .create(...lookUp(at))
        .filter((interceptor) => !isOurs(interceptor))
        .map(watchedInterceptor),
      pipes: this.#pipes.create(...lookUp(at)),
    };
    if (wrappers.every((wrapper) => wrapper.isDependencyTreeStatic() && !wrapper.isTransient))
      this.#standing.set(target, { enhancers, globals });
    return enhancers;
  }

  async #makeKnown(target: CallTarget): Promise<readonly InstanceWrapper[]> {
    const { module } = target;
    return Promise.all(
      enhancerClasses(target).map(async ({ type, subtype }) => {
        const known = module.injectables.get(type);
        if (known !== undefined) return known;
        const added = module.addInjectable(type, subtype) as InstanceWrapper;
        await this.#injector.loadInjectable(added, module);
        return added;
      }),
    );
  }

  /** Global enhancers that are made per request; Nest itself prepares them for controllers only. */
  #globalScoped(): readonly InstanceWrapper[] {
    const config = this.#config;
    return [
      ...config.getGlobalRequestGuards(),
      ...config.getGlobalRequestInterceptors(),
      ...config.getGlobalRequestPipes(),
      ...config.getGlobalRequestFilters(),
    ];
  }

  #globals(): readonly (readonly unknown[])[] {
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
}

/** It concerns HTTP handlers and hands tool calls on; going through it would cost every call. */
function isOurs(interceptor: NestInterceptor): boolean {
  return interceptor instanceof RequestInterceptor;
}

function isUnchanged(before: readonly GlobalList[], now: readonly (readonly unknown[])[]): boolean {
  return before.every(({ list, length }, index) => list === now[index] && list.length === length);
}

type LookUp = [
  instance: object,
  handler: CallTarget['handler'],
  module: string,
  contextId: ContextId,
  inquirer: string,
];

function lookUp({ target, contextId }: TargetInContext): LookUp {
  return [target.declared, target.handler, target.module.token, contextId, target.wrapper.id];
}
