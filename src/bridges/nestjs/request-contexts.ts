import { AsyncLocalStorage } from 'node:async_hooks';
import { type ContextId, ContextIdFactory, type ModuleRef } from '@nestjs/core';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import { REQUEST_CONTEXT_ID } from '@nestjs/core/router/request/request-constants.js';
import type { ToolContext } from '../../contract/tool-context.js';
import { ToolContainer } from './tool-container.js';

/** On whose behalf a call is made. */
export interface CallSurroundings {
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
  surroundingsOf(context: ToolContext): CallSurroundings {
    const given = this.#given(context);
    if (given?.isForOther !== true)
      return { request: given?.request ?? this.current(), isForAbsent: false, run: atOnce };
    const { request } = given;
    const run = <Value>(work: () => Value): Value => this.#outside(() => this.within(request, work));
    return { request, isForAbsent: request === undefined, run };
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

  #given(context: ToolContext): ToolContainer | undefined {
    try {
      const container: unknown = context.resolve(ToolContainer);
      // A container of another make may promise what it does not have, such as a `ModuleRef`.
      if (container instanceof Promise) container.catch(() => {});
      return container instanceof ToolContainer ? container : undefined;
    } catch {
      // A container of another make was given with the call.
      return undefined;
    }
  }

  /** As Nest's router does it, so that whoever asks for the request's context next gets the same. */
  #contextIdIn(request: object): ContextId {
    const contextId = ContextIdFactory.getByRequest(request);
    if (REQUEST_CONTEXT_ID in request) return contextId;
    if (Object.isExtensible(request))
      Object.defineProperty(request, REQUEST_CONTEXT_ID, { value: contextId });
    else this.#unmarkable.set(request, contextId);
    this.#modules.registerRequestByContextId(withPayload(request, contextId.payload), contextId);
    return contextId;
  }
}

/** A context of its own for one provider, and the outer one for all others. */
function contextWithin(outer: ContextId, { token }: InstanceWrapper): ContextId {
  const own: ContextId = {
    ...ContextIdFactory.create(),
    getParent: (info) => (info.token === token ? own : (outer.getParent?.(info) ?? outer)),
  };
  return own;
}

/** The request with what the `ContextIdStrategy` says of it; a frozen one stays as it is under what is added. */
function withPayload(request: object, payload: unknown): object {
  if (Object.isExtensible(request)) return Object.assign(request, payload);
  return payload ? Object.create(request, Object.getOwnPropertyDescriptors(payload)) : request;
}

function atOnce<Value>(work: () => Value): Value {
  return work();
}
