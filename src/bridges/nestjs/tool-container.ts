import type { ModuleRef } from '@nestjs/core';
import type { InjectionToken } from '../../contract/instance-resolver.js';

/**
 * What `context.resolve` asks in a Nest application: the providers of all its modules. Knows the request that
 * it was made for, and gives itself to whoever asks for it: so the pipeline finds the request of a call.
 */
export class ToolContainer {
  readonly request: object | undefined;
  readonly #modules: ModuleRef;

  constructor(modules: ModuleRef, request?: object) {
    this.#modules = modules;
    this.request = request;
  }

  /** Throws for request-scoped and transient providers, which only injection can make. */
  resolve<Instance>(token: InjectionToken<Instance>): Instance {
    if (token === ToolContainer) return this as unknown as Instance;
    return this.#modules.get<Instance>(token, { strict: false });
  }
}
