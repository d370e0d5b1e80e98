import { AsyncLocalStorage } from 'node:async_hooks';
import type { ModuleRef } from '@nestjs/core';
import type { CallScope } from '../../contract/call-scope.js';
import type { RunStore } from '../../contract/run-store.js';
import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import { anySignal } from '../../loop/any-signal.js';
import { LOOP_RULES, type ToolLoopConfig } from '../../loop/loop-config.js';
import type { LoopEvent } from '../../loop/loop-event.js';
import type { ToolLoopStream } from '../../loop/stream-run.js';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import type { ToolwrightModuleOptions } from './module-options.js';
import type { RequestContexts } from './request-contexts.js';
import type { RunningCalls } from './running-calls.js';
import { ToolContainer } from './tool-container.js';

/** The surroundings of a run in a Nest application, and its config. */
export interface RunOptions extends CallScope {
  /**
   * The request on whose behalf the run takes place: request-scoped providers are made for it, and guards find
   * it. Default: the HTTP request whose handler calls.
   */
  readonly request?: object;
  /** What the run has otherwise than the module's options say; `tools` is a view of the application's registry. */
  readonly config?: RunConfig;
}

/** The config of the loop, of which the module's options give the rest. */
export type RunConfig = Partial<Omit<ToolLoopConfig, 'tools'>> & { readonly tools?: ToolRegistry };

/** What the functions of the loop take. */
export interface RunParts {
  readonly config: ToolLoopConfig;
  readonly scope: CallScope;
}

/** What the runs of an application have in common. */
export interface SurroundingsParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly requests: RequestContexts;
  readonly running: RunningCalls;
  readonly modules: ModuleRef;
}

/** Puts a run into its application: the options, the request, the shutdown. */
export class RunSurroundings {
  readonly #parts: SurroundingsParts;

  constructor(parts: SurroundingsParts) {
    this.#parts = parts;
  }

  /** What the loop takes: the module's options under those of the run, ended by a shutdown, for its request. */
  of({ config = {}, request, ...scope }: RunOptions): RunParts {
    return { config: this.#config(config), scope: this.scopeOf(request, scope) };
  }

  /** A scope with the container and the data of the given request, or of the one whose handler is running. */
  scopeOf(given: object | undefined, scope: CallScope): CallScope {
    const { requests, modules, options } = this.#parts;
    const request = given ?? requests.current();
    if (request === undefined) return scope;
    const data = options.data && { ...options.data(request as never), ...scope.data };
    return { container: new ToolContainer(modules, request), ...scope, ...(data ? { data } : {}) };
  }

  /** What a run out of the store takes. */
  ofStored(options: RunOptions): RunParts & { readonly store: RunStore } {
    const { store } = this.#merged(options.config);
    if (store === undefined) throw new ToolDeclarationError([...this.#modelFaults(options.config), NO_STORE]);
    return { ...this.of(options), store };
  }

  track<Value>(running: Promise<Value>): Promise<Value> {
    return this.#parts.running.track(running);
  }

  /**
   * A stream whose run stays in the asynchronous context of whoever asked for it. It begins with its reader,
   * which may be the HTTP server's, where the context of the handler is gone.
   */
  watch(stream: ToolLoopStream): ToolLoopStream {
    const inContext = AsyncLocalStorage.snapshot();
    const { running } = this.#parts;
    const result = (): ToolLoopStream['result'] => running.track(inContext(() => stream.result));
    return {
      get result() {
        return result();
      },
      [Symbol.asyncIterator]() {
        const events = stream[Symbol.asyncIterator]();
        let isTracked = false;
        return {
          next() {
            const next = inContext(() => events.next());
            // From the first read on the run is under way, also while its reader takes its time.
            if (!isTracked) result().catch(() => {});
            isTracked = true;
            return next;
          },
          return: () =>
            inContext(async (): Promise<IteratorResult<LoopEvent>> => {
              const left = await events.return?.();
              return left ?? { value: undefined, done: true };
            }),
        };
      },
    };
  }

  #config(own: RunConfig): ToolLoopConfig {
    const { registry, running } = this.#parts;
    const { provider, model, ...others } = this.#merged(own);
    if (provider === undefined || model === undefined) throw new ToolDeclarationError([NO_MODEL]);
    return { tools: registry, ...others, provider, model, signal: anySignal(own.signal, running.signal) };
  }

  #modelFaults(own: RunConfig | undefined): readonly AuthorFault[] {
    const { provider, model } = this.#merged(own);
    return provider === undefined || model === undefined ? [NO_MODEL] : [];
  }

  #merged(own: RunConfig | undefined): Partial<ToolLoopConfig> {
    return { ...loopOptions(this.#parts.options), ...own };
  }
}

/** What the loop takes of the module's options. The registry asks its policy itself; a run would ask it again. */
function loopOptions(options: ToolwrightModuleOptions): Partial<ToolLoopConfig> {
  const { tools: _1, policy: _2, ...others } = options;
  return Object.fromEntries(Object.entries(others).filter(([name]) => Object.hasOwn(LOOP_RULES, name)));
}

const NO_MODEL: AuthorFault = {
  where: 'ToolwrightService',
  problem: 'a run needs a provider and a model, and it has none',
  fix: 'ToolwrightModule.forRoot({ provider, model }), or config: { provider, model } in the options of the run',
};

const NO_STORE: AuthorFault = {
  where: 'ToolwrightService.resumeStored',
  problem: 'there is no store that a run could be resumed from',
  fix: 'ToolwrightModule.forRoot({ store: new SqliteRunStore({ path }) })',
};
