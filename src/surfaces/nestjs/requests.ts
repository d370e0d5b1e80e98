import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import {
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  StreamableFile,
} from '@nestjs/common';
import { type ContextId, ContextIdFactory, type ModuleRef } from '@nestjs/core';
import { Observable } from 'rxjs';
import type { InjectionToken } from '../../core/contract/ports.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { CallContext } from '../../run/call/context.js';
import { contextWithin, hasContextId, type InstanceWrapper, keepContextId } from './nest-internals.js';

/** The origin of a call. */
export interface CallOrigin {
  readonly request: object | undefined;
  /** Its run continues for an owner without a request. */
  readonly isForAbsent: boolean;
  /** Runs `work` in the owner's context, even if another user's request resumed the run. */
  run<Value>(work: () => Value): Value;
}

/** Finds the request of a tool call, and the injection context of that request. */
export class RequestContexts {
  readonly #modules: ModuleRef;
  readonly #running = new AsyncLocalStorage<object | undefined>();
  /** The asynchronous context before any request. */
  readonly #outside = AsyncLocalStorage.snapshot();
  /** Contexts of frozen requests, on which none can be stored. */
  readonly #unmarkable = new WeakMap<object, ContextId>();

  constructor(modules: ModuleRef) {
    this.#modules = modules;
  }

  /** Runs `work` in the context of a request. */
  within<Value>(request: object | undefined, work: () => Value): Value {
    return this.#running.run(request, work);
  }

  /** The request whose handler is running. */
  current(): object | undefined {
    return this.#running.getStore();
  }

  /** The request of a call: the one it was given, otherwise the one whose handler started it. */
  originOf(context: ToolContext): CallOrigin {
    const given = this.#given(context);
    if (given?.isForOther !== true)
      return { request: given?.request ?? this.current(), isForAbsent: false, run: (work) => work() };
    const { request } = given;
    return {
      request,
      isForAbsent: request === undefined,
      run: (work) => this.#outside(() => this.within(request, work)),
    };
  }

  /**
   * The injection context for a call's objects: the request's, otherwise the call's own. A transient provider gets an
   * instance for each call, even within a request.
   */
  contextIdOf(request: object | undefined, provider: InstanceWrapper): ContextId {
    if (request === undefined) return ContextIdFactory.create();
    const contextId = this.#unmarkable.get(request) ?? this.#contextIdIn(request);
    return provider.isTransient ? contextWithin(contextId, provider) : contextId;
  }

  #given(context: ToolContext): RequestContainer | undefined {
    // Creating the error for a missing container would cost more than the rest of a call.
    if (context instanceof CallContext && !context.hasContainer) return undefined;
    try {
      const container: unknown = context.resolve(RequestContainer);
      // A foreign container, such as a `ModuleRef`, may return a promise that rejects.
      if (container instanceof Promise) container.catch(() => {});
      return container instanceof RequestContainer ? container : undefined;
    } catch {
      // The call has a foreign container.
      return undefined;
    }
  }

  /** Like Nest's router, so that later code gets the same context for the request. */
  #contextIdIn(request: object): ContextId {
    const contextId = ContextIdFactory.getByRequest(request);
    if (hasContextId(request)) return contextId;
    if (Object.isExtensible(request)) keepContextId(request, contextId);
    else this.#unmarkable.set(request, contextId);
    const { payload } = contextId;
    let withPayload = request;
    // A frozen request is not changed: another object adds the payload of the `ContextIdStrategy`.
    if (Object.isExtensible(request)) Object.assign(request, payload);
    else if (payload) withPayload = Object.create(request, Object.getOwnPropertyDescriptors(payload));
    this.#modules.registerRequestByContextId(withPayload, contextId);
    return contextId;
  }
}

/** Runs every HTTP handler in the context of its request, so that its tool calls find the request. */
export class RequestInterceptor implements NestInterceptor {
  readonly #requests: RequestContexts;

  constructor(requests: RequestContexts) {
    this.#requests = requests;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request: unknown = context.getType() === 'http' ? context.switchToHttp().getRequest() : undefined;
    if (typeof request !== 'object' || request === null) return next.handle();
    // Later code may start only on subscription: deferring interceptors, observables of the handler.
    const platform = () => context.switchToHttp().getResponse();
    return new Observable((subscriber) =>
      this.#requests.within(request, () =>
        next.handle().subscribe({
          next: (value) => subscriber.next(asReply(value, platform)),
          error: (error) => subscriber.error(error),
          complete: () => subscriber.complete(),
        }),
      ),
    );
  }
}

interface ContainerOf {
  readonly request?: object;
  readonly isForOther?: boolean;
}

/**
 * The container behind `context.resolve` in a Nest application: the providers of all modules. It contains its request
 * and resolves itself, so that the pipeline finds the request of a call.
 */
export class RequestContainer {
  readonly request: object | undefined;
  /** It belongs to another user than the current request, of which nothing may be found. */
  readonly isForOther: boolean;
  readonly #modules: ModuleRef;

  constructor(modules: ModuleRef, { request, isForOther = false }: ContainerOf = {}) {
    this.#modules = modules;
    this.request = request;
    this.isForOther = isForOther;
  }

  /** Throws for request-scoped and transient providers, which only injection can create. */
  resolve<Instance>(token: InjectionToken<Instance>): Instance {
    if (token === RequestContainer) return this as unknown as Instance;
    return this.#modules.get<Instance>(token, { strict: false });
  }
}

/** Responses of this package. Nest itself sends the responses of the application's handlers. */
const OURS = new WeakSet<Response>();

/** A response that Nest will send, in all its versions and on all platforms. */
export function asNestResponse(response: Response): Response {
  OURS.add(response);
  return response;
}

/** The response of Express, or the reply of Fastify. */
interface PlatformResponse {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
  readonly raw?: { once(event: 'close', listener: () => void): unknown };
  once?(event: 'close', listener: () => void): unknown;
}

/** Converts a response of this package to a form that every version of Nest sends; other values are unchanged. */
function asReply(given: unknown, platform: () => PlatformResponse): unknown {
  if (!(given instanceof Response) || !OURS.has(given)) return given;
  const response = platform();
  for (const [name, value] of given.headers) response.header(name, value);
  const body = given.body === null ? Readable.from([]) : Readable.fromWeb(given.body as never);
  // Not every version ends a stream when its reader disconnects.
  const leave = (): void => void body.destroy();
  if (response.raw !== undefined) response.raw.once('close', leave);
  else response.once?.('close', leave);
  return new SentResponse(body, { type: given.headers.get('content-type') ?? '' }, () =>
    response.status(given.status),
  );
}

/** Nest sets the route's status before it requests the stream, so this sets the status then. */
class SentResponse extends StreamableFile {
  readonly #setStatus: () => void;

  constructor(body: Readable, headers: { readonly type: string }, setStatus: () => void) {
    super(body, headers);
    this.#setStatus = setStatus;
  }

  override getStream(): Readable {
    this.#setStatus();
    return super.getStream();
  }
}
