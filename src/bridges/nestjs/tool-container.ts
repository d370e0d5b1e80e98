import type { ModuleRef } from '@nestjs/core';
import type { InjectionToken } from '../../contract/instance-resolver.js';

/** Whom a container is for. */
interface ContainerOf {
  readonly request?: object;
  readonly isForOther?: boolean;
}

/**
 * What `context.resolve` asks in a Nest application: the providers of all its modules. Knows the request that
 * it was made for, and gives itself to whoever asks for it: so the pipeline finds the request of a call.
 */
export class ToolContainer {
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
    if (token === ToolContainer) return this as unknown as Instance;
    return this.#modules.get<Instance>(token, { strict: false });
  }
}
