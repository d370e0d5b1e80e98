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
import { RequestInterceptor } from './requests.js';

/** What stands around the calls of a target, in Nest's order: global, of its class, of its method. */
export interface TargetEnhancers {
  readonly guards: CanActivate[];
  readonly interceptors: NestInterceptor[];
  readonly pipes: PipeTransform[];
}

/** Enhancers that are the same for every call, and the global ones when they were looked up. */
interface StaticEnhancers {
  readonly enhancers: TargetEnhancers;
  readonly globals: readonly unknown[];
}

/**
 * The guards, interceptors, pipes and exception filters of a target, by Nest's own creators. Where none of them
 * is made per request, they are looked up once; again where `useGlobalGuards` and its like came after that.
 */
export class Enhancers {
  readonly #creators: NestEnhancers<TracedFilters>;
  readonly #injectables = new WeakMap<CallTarget, Promise<readonly InstanceWrapper[]>>();
  readonly #static = new WeakMap<CallTarget, StaticEnhancers>();

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    this.#creators = new NestEnhancers(modules, config, TracedFilters);
  }

  /** What stands around every call of a target, where that is known and has not changed. */
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

  /** What stands around a call in its injection context. Rejects where injection fails. */
  async around(at: TargetInContext): Promise<TargetEnhancers> {
    return this.staticOf(at.target) ?? this.#lookUp(at);
  }

  /**
   * Makes the enhancer classes of a target known to its module. Nest skips one that it did not see at the
   * provider (which a factory made, or which is a registered tool), and a guard must not be skipped.
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

  /** What stands around the methods of these places, by name: what is global first. */
  namesAround(places: readonly object[]): readonly EnhancerName[] {
    const globals = this.#creators.globals();
    const everywhere = GLOBAL_KINDS.flatMap((kind, index) =>
      (globals[index] ?? []).flatMap((enhancer) => namesOf(enhancer, kind)),
    );
    return [...everywhere, ...enhancersAt(places).flatMap(({ enhancer, kind }) => namesOf(enhancer, kind))];
  }

  /** Pipes that stand on a parameter. */
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
        // It is for HTTP handlers, and would cost every call.
        .filter((interceptor) => !(interceptor instanceof RequestInterceptor))
        .map(tracedInterceptor),
      pipes: this.#creators.pipes.create(...placeOf(at)),
    };
    if (wrappers.every(isStatic)) this.#static.set(target, { enhancers, globals });
    return enhancers;
  }
}

/** An enhancer as people know it. */
interface EnhancerName {
  readonly kind: 'guard' | 'interceptor' | 'pipe' | 'filter';
  readonly name: string;
}

/** In the order of Nest's lists of global enhancers. */
const GLOBAL_KINDS = ['guard', 'interceptor', 'pipe', 'guard', 'interceptor', 'pipe', 'filter'] as const;

/** Nest keeps classes, instances and wrappers of either. */
function namesOf(enhancer: unknown, kind: EnhancerName['kind']): readonly EnhancerName[] {
  if (enhancer instanceof RequestInterceptor) return [];
  const { name, metatype } = Object(enhancer) as { readonly name?: unknown; readonly metatype?: unknown };
  if (metatype === RequestInterceptor) return [];
  const own = metatype ?? (typeof enhancer === 'function' ? enhancer : Object(enhancer).constructor);
  const called = typeof own === 'function' ? own.name : name;
  return [{ kind, name: String(called) }];
}

/** What Nest's creators of enhancers take. */
function placeOf({ target, contextId }: TargetInContext) {
  return [target.declared, target.handler, target.module.token, contextId, target.wrapper.id] as const;
}

/** Nest's exception filters, except that a filter that throws is recorded. They answer with promises. */
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
    // Its prototype is the filter, so that Nest finds what `@Catch` recorded.
    return Object.create(filter, { catch: { value: answer } });
  }
}

/** The last value of an observable (nothing: `undefined`), which an abort ends; anything else as it is. */
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

/** Its prototype is the interceptor, whose name a warning shows. */
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

/** What was thrown, and the filter or the innermost interceptor that it came out of. */
const origins = new WeakMap<object, object>();

export function enhancerThatThrew(thrown: unknown): object | undefined {
  return origins.get(Object(thrown));
}
