import { AsyncLocalStorage } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import {
  type ArgumentsHost,
  type CallHandler,
  type ContextType,
  type ExecutionContext,
  Inject,
  type NestInterceptor,
  StreamableFile,
} from '@nestjs/common';
import { type ContextId, ContextIdFactory, ModuleRef } from '@nestjs/core';
import { Observable } from 'rxjs';
import type { InjectionToken } from '../../core/contract/ports.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { MAX_TIMER_MS } from '../../core/kernel/async.js';
import { isObject } from '../../core/kernel/json.js';
import { withMethods } from '../../core/kernel/options.js';
import { CallContext } from '../../run/call/context.js';
import type { TaskQueue } from '../../run/call/task-queue.js';
import { contextWithin, type InstanceWrapper, REQUEST_CONTEXT_ID } from './nest-internals.js';

/** Types of `ExecutionContext.getType()` in applications with tools: `context.getType<ToolContextType>()`. */
export type ToolContextType = ContextType | 'tool';

/** The tool call in a guard, an interceptor or an exception filter. */
export interface ToolCallInfo {
  /** The tool as it is offered: name, annotations, schema. */
  readonly tool: ToolDefinition;
  /** The arguments for the tool: validated, repaired, with defaults. JSON, unless the call bypassed the registry. */
  readonly arguments: unknown;
  /** The context of the call: `callId`, `data`, `signal`, … */
  readonly context: ToolContext;
  /** The HTTP request that started the loop, or the object given as `request`; absent without an HTTP request. */
  readonly request?: object;
}

/** The index of the call in a handler's arguments. Before it are HTTP's: request, response, next. */
const CALL_POSITION = 3;

/**
 * The tool call of an `ExecutionContext` or `ArgumentsHost` whose `getType()` is `'tool'`; otherwise `undefined`.
 *
 * @example
 * ```ts
 * @Injectable()
 * class WritersOnly implements CanActivate {
 *   canActivate(context: ExecutionContext) {
 *     const call = toolCallOf(context);
 *     return call === undefined || call.tool.annotations?.readOnly === true || call.context.data.role === 'writer';
 *   }
 * }
 * ```
 */
export function toolCallOf(host: ArgumentsHost): ToolCallInfo | undefined {
  checkArguments({ of: 'toolCallOf', given: { host }, rules: { host: HOST } });
  return host.getType<ToolContextType>() === 'tool' ? host.getArgByIndex(CALL_POSITION) : undefined;
}

const HOST = withMethods(['getType', 'getArgByIndex'], 'the ExecutionContext or ArgumentsHost of the call');

/** The abort reason of work that outlasts the shutdown's time limit. */
export const SHUTDOWN = new DOMException('The application is shutting down.', 'AbortError');

/** The error for waiting on a run that continues in another process. */
const LEFT =
  'The run was left to other processes, which continue it when its lease has ended: this application is shutting down.';

/** How long aborted runs may take to end: a reader that has left may keep one open forever. */
const ABORT_GRACE_MS = 1_000;

/** A call whose method has not ended. */
interface CallUnderWay extends Pick<ToolCallInfo, 'context' | 'tool'> {
  readonly work: Promise<unknown>;
  reject(reason: unknown): void;
}

/** Tracks running calls, runs and background tasks, so that a shutdown can wait for them and abort the rest. */
export class RunningCalls {
  readonly #runs = new Set<Promise<unknown>>();
  readonly #calls = new Set<CallUnderWay>();
  readonly #leaving = new AbortController();
  readonly #ending = new AbortController();
  /** Aborted when a shutdown has waited long enough. */
  readonly signal: AbortSignal = this.#ending.signal;
  /** Aborted before `signal`, for jobs and stored runs, which are left to other processes. */
  readonly leaving: AbortSignal = this.#leaving.signal;
  readonly #tasks: TaskQueue;

  constructor(tasks: TaskQueue) {
    this.#tasks = tasks;
    // Many runs may listen; this is not a leak.
    setMaxListeners(0, this.signal, this.leaving);
  }

  /**
   * Tracks a call until its method has ended. After its time limit, a shutdown stops and rejects it; no call can start
   * then.
   */
  call({ context, tool }: Pick<CallUnderWay, 'context' | 'tool'>, work: () => unknown): unknown {
    this.signal.throwIfAborted();
    const value = work();
    if (!(value instanceof Promise)) return value;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const call = { context, tool, work: value, reject };
    this.#calls.add(call);
    value.finally(() => this.#calls.delete(call)).then(resolve, reject);
    return promise;
  }

  /** Tracks a run until it has ended; the signal ends it. */
  track<Value>(running: Promise<Value>): Promise<Value> {
    this.#runs.add(running);
    const forget = () => this.#runs.delete(running);
    running.then(forget, forget);
    return running;
  }

  /** Waits until nothing runs; after `limitMs`, aborts what still runs. */
  async end(limitMs: number): Promise<void> {
    this.#tasks.leaveJobs();
    await this.#settled(limitMs);
    this.#leaving.abort(new ToolwrightError('RunClaimed', LEFT));
    this.#ending.abort(SHUTDOWN);
    for (const { context, reject } of this.#calls) {
      // A call that was stopped for another reason already has its result, such as a job that is left to others.
      if (context instanceof CallContext && context.isStopped) continue;
      if (context instanceof CallContext) context.stop(SHUTDOWN);
      reject(SHUTDOWN);
    }
    for (const { id } of this.#tasks.tasks) this.#tasks.cancel(id, SHUTDOWN.message);
    await this.#settled(ABORT_GRACE_MS);
  }

  /** Resolves when nothing runs, or after `limitMs`. */
  async #settled(limitMs: number): Promise<void> {
    const late = Promise.withResolvers<true>();
    const limit = setTimeout(() => late.resolve(true), Math.min(limitMs, MAX_TIMER_MS));
    for (;;) {
      const running = [...this.#runs, ...[...this.#calls].flatMap(endOf)];
      if (running.length === 0 && this.#tasks.tasks.length === 0) break;
      const settled = Promise.allSettled([...running, this.#tasks.idle()]);
      if ((await Promise.race([settled, late.promise])) === true) break;
    }
    clearTimeout(limit);
  }
}

/**
 * Promises to wait for until a call has ended. If a call is answered before its method ends, it is awaited only if the
 * method observes the signal.
 */
function endOf({ work, context, tool }: CallUnderWay): readonly Promise<unknown>[] {
  if (!(context instanceof CallContext) || tool.observesSignal) return [work];
  if (context.isStopped) return [];
  const { promise: stopped, resolve } = Promise.withResolvers<unknown>();
  context.onStop(resolve);
  return [Promise.race([work, stopped])];
}

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

  constructor(@Inject(ModuleRef) modules: ModuleRef) {
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
    if (REQUEST_CONTEXT_ID in request) return contextId;
    if (Object.isExtensible(request))
      Object.defineProperty(request, REQUEST_CONTEXT_ID, { value: contextId });
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

  constructor(@Inject(RequestContexts) requests: RequestContexts) {
    this.#requests = requests;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request: unknown = context.getType() === 'http' ? context.switchToHttp().getRequest() : undefined;
    if (!isObject(request)) return next.handle();
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

/**
 * The container behind `context.resolve` in a Nest application: the providers of all modules. It contains its request
 * and resolves itself, so that the pipeline finds the request of a call.
 */
export class RequestContainer {
  readonly request: object | undefined;
  /** It belongs to another user than the current request, of which nothing may be found. */
  readonly isForOther: boolean;
  readonly #modules: ModuleRef;

  constructor(
    modules: ModuleRef,
    { request, isForOther = false }: Partial<Pick<RequestContainer, 'request' | 'isForOther'>> = {},
  ) {
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
  (response.raw ?? response).once?.('close', leave);
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
