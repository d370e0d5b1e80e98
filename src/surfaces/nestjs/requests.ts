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

/** On whose behalf a call is made. */
export interface CallOrigin {
  readonly request: object | undefined;
  /** Its run goes on for an owner of whom there is no request. */
  readonly isForAbsent: boolean;
  /** Lets everything that `work` starts belong to the owner, also where somebody else's request made the run go on. */
  run<Value>(work: () => Value): Value;
}

/** Which request a tool call belongs to, and the injection context of that request. */
export class RequestContexts {
  readonly #modules: ModuleRef;
  readonly #running = new AsyncLocalStorage<object | undefined>();
  /** As it was before any request, for whatever lives in `AsyncLocalStorage`. */
  readonly #outside = AsyncLocalStorage.snapshot();
  /** The contexts of frozen requests, which cannot bear the mark. */
  readonly #unmarkable = new WeakMap<object, ContextId>();

  constructor(modules: ModuleRef) {
    this.#modules = modules;
  }

  /** Everything that `work` starts belongs to the request. */
  within<Value>(request: object | undefined, work: () => Value): Value {
    return this.#running.run(request, work);
  }

  /** The request whose handler is running. */
  current(): object | undefined {
    return this.#running.getStore();
  }

  /** The request that a call belongs to: the one it was given, otherwise the one whose handler started it. */
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
   * The context in which what a call needs is made: the request's, otherwise the call's own. A transient
   * provider is made for its call alone, also within a request.
   */
  contextIdOf(request: object | undefined, provider: InstanceWrapper): ContextId {
    if (request === undefined) return ContextIdFactory.create();
    const contextId = this.#unmarkable.get(request) ?? this.#contextIdIn(request);
    return provider.isTransient ? contextWithin(contextId, provider) : contextId;
  }

  #given(context: ToolContext): RequestContainer | undefined {
    // The error of one that has none would cost more than all the rest of a call.
    if (context instanceof CallContext && !context.hasContainer) return undefined;
    try {
      const container: unknown = context.resolve(RequestContainer);
      // A container of another make may promise what it does not have, such as a `ModuleRef`.
      if (container instanceof Promise) container.catch(() => {});
      return container instanceof RequestContainer ? container : undefined;
    } catch {
      // A container of another make was given with the call.
      return undefined;
    }
  }

  /** As Nest's router does it, so that whoever asks for the request's context next gets the same. */
  #contextIdIn(request: object): ContextId {
    const contextId = ContextIdFactory.getByRequest(request);
    if (hasContextId(request)) return contextId;
    if (Object.isExtensible(request)) keepContextId(request, contextId);
    else this.#unmarkable.set(request, contextId);
    const { payload } = contextId;
    let withPayload = request;
    // A frozen request stays as it is under what the `ContextIdStrategy` adds.
    if (Object.isExtensible(request)) Object.assign(request, payload);
    else if (payload) withPayload = Object.create(request, Object.getOwnPropertyDescriptors(payload));
    this.#modules.registerRequestByContextId(withPayload, contextId);
    return contextId;
  }
}

/** Lets every HTTP handler run within its request, so that the tools it calls find the request. */
export class RequestInterceptor implements NestInterceptor {
  readonly #requests: RequestContexts;

  constructor(requests: RequestContexts) {
    this.#requests = requests;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request: unknown = context.getType() === 'http' ? context.switchToHttp().getRequest() : undefined;
    if (typeof request !== 'object' || request === null) return next.handle();
    // What comes after may begin only with its subscriber: a deferring interceptor, an observable of the handler.
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

/** Whom a container is for. */
interface ContainerOf {
  readonly request?: object;
  readonly isForOther?: boolean;
}

/**
 * What `context.resolve` asks in a Nest application: the providers of all its modules. Knows the request that
 * it was made for, and gives itself to whoever asks for it: so the pipeline finds the request of a call.
 */
export class RequestContainer {
  readonly request: object | undefined;
  /** It is for somebody else than the request that is being handled: nothing of that one may be found. */
  readonly isForOther: boolean;
  readonly #modules: ModuleRef;

  constructor(modules: ModuleRef, { request, isForOther = false }: ContainerOf = {}) {
    this.#modules = modules;
    this.request = request;
    this.isForOther = isForOther;
  }

  /** Throws for request-scoped and transient providers, which only injection can make. */
  resolve<Instance>(token: InjectionToken<Instance>): Instance {
    if (token === RequestContainer) return this as unknown as Instance;
    return this.#modules.get<Instance>(token, { strict: false });
  }
}

/** Those that this package has made: what handlers of the application return is theirs, and Nest's. */
const OURS = new WeakSet<Response>();

/** A response that Nest is to send, whichever version of it, and on which platform, this is. */
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

/** What a handler gave, as every version of Nest sends it; only responses of our own become something else. */
function asReply(given: unknown, platform: () => PlatformResponse): unknown {
  if (!(given instanceof Response) || !OURS.has(given)) return given;
  const response = platform();
  for (const [name, value] of given.headers) response.header(name, value);
  const body = given.body === null ? Readable.from([]) : Readable.fromWeb(given.body as never);
  // Not every version tells a stream that its reader has left.
  const leave = (): void => void body.destroy();
  if (response.raw !== undefined) response.raw.once('close', leave);
  else response.once?.('close', leave);
  return new SentResponse(body, { type: given.headers.get('content-type') ?? '' }, () =>
    response.status(given.status),
  );
}

/** Nest sets the status of a route before it asks for the stream. */
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
