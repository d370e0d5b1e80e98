import type {
  ArgumentsHost,
  CallHandler,
  CanActivate,
  ExceptionFilter,
  ExecutionContext,
  NestInterceptor,
  PipeTransform,
} from '@nestjs/common';
import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { catchError, isObservable } from 'rxjs';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { onAbort } from '../../core/kernel/async.js';
import { CallContext } from '../../run/call/context.js';
import { RequestInterceptor } from './calls.js';
import type { CallTarget, TargetInContext } from './handlers.js';
import {
  ExternalExceptionFilterContext,
  type ExternalExceptionsHandler,
  enhancerClasses,
  enhancersAt,
  type InstanceWrapper,
  isStatic,
  NestEnhancers,
} from './nest-internals.js';

/** The enhancers of a target's calls, in Nest's order: global, class, method. */
export interface TargetEnhancers {
  readonly guards: CanActivate[];
  readonly interceptors: NestInterceptor[];
  readonly pipes: PipeTransform[];
}

/** Enhancers that are the same for every call, and the global ones at the time of lookup. */
interface StaticEnhancers {
  readonly enhancers: TargetEnhancers;
  readonly globals: readonly unknown[];
}

/**
 * Creates the guards, interceptors, pipes and exception filters of a target with Nest's own creators. If none is
 * request-scoped, they are looked up once, and again after calls such as `useGlobalGuards`.
 */
export class Enhancers {
  readonly #creators: NestEnhancers<TracedFilters>;
  readonly #injectables = new WeakMap<CallTarget, Promise<readonly InstanceWrapper[]>>();
  readonly #static = new WeakMap<CallTarget, StaticEnhancers>();

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    this.#creators = new NestEnhancers(modules, config, TracedFilters);
  }

  /** The cached enhancers of a target, if they are the same for all calls and still valid. */
  staticOf(target: CallTarget): TargetEnhancers | undefined {
    const found = this.#static.get(target);
    if (found === undefined) return undefined;
    // Nest replaces its lists of global enhancers or adds to them.
    const globals = this.#creators.globals().flat();
    const isSame =
      globals.length === found.globals.length &&
      globals.every((enhancer, index) => enhancer === found.globals[index]);
    return isSame ? found.enhancers : undefined;
  }

  /** The enhancers of a call in its injection context. Rejects if injection fails. */
  async around(at: TargetInContext): Promise<TargetEnhancers> {
    return this.staticOf(at.target) ?? this.#lookUp(at);
  }

  /**
   * Adds the enhancer classes of a target to its module. Nest silently skips a class that it did not find at the
   * provider (as for factories and registered tools), and a guard must not be skipped.
   */
  injectablesOf(target: CallTarget): Promise<readonly InstanceWrapper[]> {
    let injectables = this.#injectables.get(target);
    if (injectables === undefined) {
      const classes = enhancerClasses([target.declared.constructor, target.handler], target.parameterPipes);
      injectables = Promise.all(classes.map((type) => this.#creators.injectable(target.module, type)));
      this.#injectables.set(target, injectables);
    }
    return injectables;
  }

  /** Names of the enhancers of these methods and classes, global ones first. */
  namesAround(places: readonly object[]): readonly EnhancerName[] {
    const globals = this.#creators.globals();
    const everywhere = GLOBAL_KINDS.flatMap((kind, index) =>
      (globals[index] ?? []).flatMap((enhancer) => namesOf(enhancer, kind)),
    );
    return [...everywhere, ...enhancersAt(places).flatMap(({ enhancer, kind }) => namesOf(enhancer, kind))];
  }

  /** The pipes of a parameter. */
  pipesOf(pipes: readonly unknown[], { target, contextId }: TargetInContext): PipeTransform[] {
    this.#creators.pipes.setModuleContext(target.module.token);
    return this.#creators.pipes.createConcreteContext(
      [...pipes] as PipeTransform[],
      contextId,
      target.wrapper.id,
    );
  }

  filters(at: TargetInContext): ExternalExceptionsHandler {
    return this.#creators.filters.create(...placeOf(at));
  }

  async #lookUp(at: TargetInContext): Promise<TargetEnhancers> {
    const { target, contextId } = at;
    const globals = this.#creators.globals().flat();
    const wrappers = [...this.#creators.globalScoped(), ...(await this.injectablesOf(target))];
    await Promise.all(wrappers.map((wrapper) => this.#creators.load(wrapper, contextId, target.wrapper)));
    const enhancers: TargetEnhancers = {
      guards: this.#creators.guards.create(...placeOf(at)),
      interceptors: this.#creators.interceptors
        .create(...placeOf(at))
        // It is for HTTP handlers, and would slow down every call.
        .filter((interceptor) => !(interceptor instanceof RequestInterceptor))
        .map(tracedInterceptor),
      pipes: this.#creators.pipes.create(...placeOf(at)),
    };
    if (wrappers.every(isStatic)) this.#static.set(target, { enhancers, globals });
    return enhancers;
  }
}

/** An enhancer's name and kind for people. */
interface EnhancerName {
  readonly kind: 'guard' | 'interceptor' | 'pipe' | 'filter';
  readonly name: string;
}

/** In the order of Nest's lists of global enhancers. */
const GLOBAL_KINDS = ['guard', 'interceptor', 'pipe', 'guard', 'interceptor', 'pipe', 'filter'] as const;

/** Nest's lists contain classes, instances, and wrappers of both. */
function namesOf(enhancer: unknown, kind: EnhancerName['kind']): readonly EnhancerName[] {
  if (enhancer instanceof RequestInterceptor) return [];
  const { name, metatype } = Object(enhancer) as { readonly name?: unknown; readonly metatype?: unknown };
  if (metatype === RequestInterceptor) return [];
  const own = metatype ?? (typeof enhancer === 'function' ? enhancer : Object(enhancer).constructor);
  const called = typeof own === 'function' ? own.name : name;
  return [{ kind, name: String(called) }];
}

/** Arguments of Nest's creators of enhancers. */
function placeOf({ target, contextId }: TargetInContext) {
  return [target.declared, target.handler, target.module.token, contextId, target.wrapper.id] as const;
}

/** Nest's exception filters, with a record of the filter that threw. Their results are promises. */
class TracedFilters extends ExternalExceptionFilterContext {
  override getFilterInstance(
    ...given: Parameters<ExternalExceptionFilterContext['getFilterInstance']>
  ): ExceptionFilter | null {
    const filter = super.getFilterInstance(...given);
    if (filter === null) return null;
    const answer = async (exception: unknown, host: ArgumentsHost): Promise<unknown> => {
      try {
        return await lastValue(await filter.catch(exception, host));
      } catch (thrown) {
        origins.set(Object(thrown), filter);
        throw thrown;
      }
    };
    // With the filter as prototype, Nest finds the metadata of `@Catch`.
    return Object.create(filter, { catch: { value: answer } });
  }
}

/** The last value of an observable (`undefined` if it is empty), which an abort ends; other values unchanged. */
export function lastValue(value: unknown, context?: ToolContext): unknown {
  if (!isObservable(value)) return value;
  return new Promise((resolve, reject) => {
    let last: unknown;
    const subscription = value.subscribe({
      next: (item) => {
        last = item;
      },
      error: reject,
      complete: () => resolve(last),
    });
    if (context === undefined || subscription.closed) return;
    const stop = (reason: unknown): void => {
      subscription.unsubscribe();
      reject(reason);
    };
    const { signal } = context;
    subscription.add(
      context instanceof CallContext ? context.onStop(stop) : onAbort(signal, () => stop(signal.reason)),
    );
  });
}

/** The interceptor is the prototype, so that warnings show its name. */
function tracedInterceptor(interceptor: NestInterceptor): NestInterceptor {
  const trace = (thrown: unknown): never => {
    const error = Object(thrown);
    if (!origins.has(error)) origins.set(error, interceptor);
    throw thrown;
  };
  const intercept = async (execution: ExecutionContext, next: CallHandler): Promise<unknown> => {
    try {
      const values: unknown = await interceptor.intercept(execution, next);
      return isObservable(values) ? values.pipe(catchError(trace)) : values;
    } catch (thrown) {
      return trace(thrown);
    }
  };
  return Object.create(interceptor, { intercept: { value: intercept } });
}

/** The filter, or innermost interceptor, that threw an error. */
const origins = new WeakMap<object, object>();

export function enhancerThatThrew(thrown: unknown): object | undefined {
  return origins.get(Object(thrown));
}
