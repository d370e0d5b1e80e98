import { AsyncResource } from 'node:async_hooks';
import type {
  ArgumentsHost,
  CanActivate,
  ExceptionFilter,
  ExecutionContext,
  NestInterceptor,
  PipeTransform,
} from '@nestjs/common';
import type { ApplicationConfig, ContextId, ModulesContainer } from '@nestjs/core';
import {
  from,
  isObservable,
  Observable,
  type ObservableInput,
  type Subscriber,
  type Subscription,
  type TeardownLogic,
} from 'rxjs';
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
import { lastValue } from './returned-value.js';

/** What stands around the calls of a target, in Nest's order: global, of its class, of its method. */
export interface TargetEnhancers {
  readonly guards: CanActivate[];
  readonly interceptors: NestInterceptor[];
  readonly pipes: PipeTransform[];
}

/** Enhancers that are the same for every call, and the lists of global ones when they were looked up. */
interface StaticEnhancers {
  readonly enhancers: TargetEnhancers;
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
  readonly #creators: NestEnhancers<TracedFilters>;
  readonly #injectables = new WeakMap<CallTarget, Promise<readonly InstanceWrapper[]>>();
  readonly #static = new WeakMap<CallTarget, StaticEnhancers>();

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    this.#creators = new NestEnhancers(modules, config, TracedFilters);
  }

  /** What stands around every call of a target, where that is known and has not changed. */
  staticOf(target: CallTarget): TargetEnhancers | undefined {
    const found = this.#static.get(target);
    return found && isUnchanged(found.globals, this.#creators.globals()) ? found.enhancers : undefined;
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
    return this.#creators.filters.create(...lookUp(at));
  }

  async #lookUp(at: TargetInContext): Promise<TargetEnhancers> {
    const { target, contextId } = at;
    const globals = this.#creators.globals().map((list) => ({ list, length: list.length }));
    const wrappers = [...this.#creators.globalScoped(), ...(await this.injectablesOf(target))];
    await Promise.all(wrappers.map((wrapper) => this.#creators.load(wrapper, contextId, target.wrapper)));
    const enhancers: TargetEnhancers = {
      guards: this.#creators.guards.create(...lookUp(at)),
      interceptors: this.#creators.interceptors
        .create(...lookUp(at))
        .filter((interceptor) => !isOurs(interceptor)),
      pipes: this.#creators.pipes.create(...lookUp(at)),
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

/** What an exception filter threw instead of answering, and which filter. */
export class FilterFailure {
  readonly filter: object;
  readonly thrown: unknown;

  constructor(filter: object, thrown: unknown) {
    this.filter = filter;
    this.thrown = thrown;
  }
}

/** Nest's exception filters, except that one which throws is known by name. They answer with promises. */
class TracedFilters extends ExternalExceptionFilterContext {
  override getFilterInstance(
    ...given: Parameters<ExternalExceptionFilterContext['getFilterInstance']>
  ): ExceptionFilter | null {
    const filter = super.getFilterInstance(...given);
    return filter && traced(filter);
  }
}

/** Its prototype is the filter, so that Nest finds what `@Catch` recorded. */
function traced(filter: ExceptionFilter): ExceptionFilter {
  const answer = async (exception: unknown, host: ArgumentsHost): Promise<unknown> => {
    try {
      return await lastValue(await filter.catch(exception, host));
    } catch (thrown) {
      throw new FilterFailure(filter, thrown);
    }
  };
  return Object.create(filter, { catch: { value: answer } });
}

/** A method and the interceptors around it. */
interface Interception {
  readonly interceptors: readonly NestInterceptor[];
  readonly execution: ExecutionContext;
  readonly method: () => Promise<unknown>;
}

/**
 * What the interceptors around a method make of what it gives: as Nest's own consumer runs them, for a third of the
 * time, and so that the interceptor is known which something that was thrown came out of.
 */
export function intercepted(interception: Interception): Observable<unknown> {
  return new Observable((subscriber) => intercept(interception, 0, subscriber));
}

function intercept(
  interception: Interception,
  index: number,
  subscriber: Subscriber<unknown>,
): TeardownLogic {
  const interceptor = interception.interceptors[index];
  if (interceptor === undefined) return callMethod(interception.method, subscriber);
  const handle = (): Observable<unknown> => {
    // What is subscribed to later still runs in the asynchronous context of whoever asked for it.
    const scope = new AsyncResource('ToolInterceptor');
    return new Observable((inner) => scope.runInAsyncScope(() => intercept(interception, index + 1, inner)));
  };
  const fail = (thrown: unknown): void => {
    if (typeof thrown === 'object' && thrown !== null && !origins.has(thrown))
      origins.set(thrown, interceptor);
    subscriber.error(thrown);
  };
  const follow = (answer: Observable<unknown>): Subscription =>
    answer.subscribe({
      next: (value) => subscriber.next(value),
      error: fail,
      complete: () => subscriber.complete(),
    });
  try {
    const answer: unknown = interceptor.intercept(interception.execution, { handle });
    if (isObservable(answer)) return follow(answer);
    Promise.resolve(answer)
      .then((later) => {
        if (subscriber.closed) return;
        subscriber.add(
          isObservable(later) ? follow(later) : from(later as ObservableInput<unknown>).subscribe(subscriber),
        );
      }, fail)
      .catch((thrown) => subscriber.error(thrown));
  } catch (thrown) {
    fail(thrown);
  }
}

/** In a microtask, as Nest does it: what an interceptor does after it has subscribed comes first. */
function callMethod(method: () => Promise<unknown>, subscriber: Subscriber<unknown>): void {
  Promise.resolve()
    .then(() => (subscriber.closed ? undefined : method()))
    .then((value) => {
      if (subscriber.closed) return;
      if (isObservable(value)) subscriber.add(from(value).subscribe(subscriber));
      else {
        subscriber.next(value);
        subscriber.complete();
      }
    })
    .catch((thrown) => subscriber.error(thrown));
}

/** By what was thrown: the interceptor that it came out of first. */
const origins = new WeakMap<object, NestInterceptor>();

/** The innermost interceptor through which something came that was thrown. */
export function interceptorOf(thrown: unknown): NestInterceptor | undefined {
  return typeof thrown === 'object' && thrown !== null ? origins.get(thrown) : undefined;
}
