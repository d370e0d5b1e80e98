import { Inject } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import { RUN_STORE } from '../../core/contract/run-state.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { createRedaction } from '../../run/call/redact.js';
import { TaskQueue } from '../../run/call/task-queue.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { boundMethodOf } from '../../tools/discovery/discover-tools.js';
import type { Inspector } from '../inspector/create-inspector.js';
import { type InspectorOptions, mayInspect } from '../inspector/options.js';
import { ApplicationFleet, isHeldBack } from './application-fleet.js';
import { ApplicationRuns } from './application-runs.js';
import { type ApplicationTools, createApplicationTools } from './application-tools.js';
import { RunningCalls } from './calls.js';
import { Enhancers } from './enhancers.js';
import type { ToolwrightModuleOptions } from './options.js';
import { CallPipeline, createErrorDescriber, nestLogger } from './pipeline.js';
import { RequestContexts } from './requests.js';
import { ToolCaller, ToolVisibility } from './tool-caller.js';

/** Token of the checked options of an application's `ToolwrightModule`. */
export const MODULE_OPTIONS = Symbol('toolwright.module-options');

/** Injected by Nest. */
export class ApplicationParts {
  @Inject(MODULE_OPTIONS) readonly options!: ToolwrightModuleOptions;
  @Inject(TaskQueue) readonly tasks!: TaskQueue;
  @Inject(RequestContexts) readonly requests!: RequestContexts;
  @Inject(ModulesContainer) readonly modules!: ModulesContainer;
  @Inject(ApplicationConfig) readonly config!: ApplicationConfig;
  @Inject(DiscoveryService) readonly discovery!: DiscoveryService;
  @Inject(ModuleRef) readonly moduleRef!: ModuleRef;
}

/** What exists once per application: its tools, their caller, and its runs. */
export class Application {
  readonly tools: ApplicationTools;
  readonly runs: ApplicationRuns;
  readonly fleet: ApplicationFleet;
  readonly inspector: ApplicationInspector;

  constructor({ options, tasks, requests, modules, config, discovery, moduleRef }: ApplicationParts) {
    const running = new RunningCalls(tasks);
    const visibility = new ToolVisibility(options);
    const enhancers = new Enhancers(modules, config);
    const pipeline = new CallPipeline(
      enhancers,
      createErrorDescriber(options),
      createRedaction(options.redact),
    );
    const caller = new ToolCaller({ enhancers, requests, running, pipeline, visibility });
    this.tools = createApplicationTools({ options, caller, tasks, discovery, moduleRef, modules });
    const { registry } = this.tools;
    this.runs = new ApplicationRuns({ options, registry, requests, running, modules: moduleRef, visibility });
    this.fleet = new ApplicationFleet({ options, registry, runs: this.runs, running });
    this.inspector = new ApplicationInspector({ options, registry, runs: this.runs, enhancers });
  }
}

interface InspectorParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly runs: ApplicationRuns;
  readonly enhancers: Enhancers;
}

/** The inspector of an application, if its options request one. */
class ApplicationInspector {
  readonly #parts: InspectorParts;
  #inspector: Inspector | undefined;

  constructor(parts: InspectorParts) {
    this.#parts = parts;
  }

  /** Starts the inspector unless it is forbidden: the same module runs in production. */
  async begin(): Promise<void> {
    const { inspector, logger = nestLogger() } = this.#parts.options;
    if (inspector === undefined || inspector === false || isHeldBack()) return;
    const { port, host, ...settings } = inspector === true ? {} : inspector;
    if (!mayInspect(settings)) {
      const place = process.env.NODE_ENV || 'not set';
      logger.warn(
        `There is no inspector, as NODE_ENV is ${place}: NODE_ENV=development, or inspector: { allowInProduction: true }`,
      );
      return;
    }
    const { createInspector } = await import('../inspector/create-inspector.js');
    this.#inspector = createInspector(this.#parts.registry, { ...this.inspection(), ...settings });
    const { url } = await this.#inspector.listen({ port, host });
    // The URL grants access, so it is printed for the terminal and never logged.
    process.stderr.write(`Toolwright inspector: ${url}\n`);
  }

  async end(): Promise<void> {
    await this.#inspector?.close();
    this.#inspector = undefined;
  }

  /** Inspector options for this application. */
  inspection(): InspectorOptions {
    const { options, runs, enhancers } = this.#parts;
    const { provider, model, store, stateSecret, scopeOf, conversations } = options;
    return withoutUndefined<InspectorOptions>({
      provider,
      model,
      stateSecret,
      systemPrompt: conversations?.systemPrompt,
      // The module also accepts stores that have only jobs.
      store: RUN_STORE.accepts(store) ? (store as InspectorOptions['store']) : undefined,
      surroundings: (tool) => {
        const bound = boundMethodOf(tool);
        if (bound === undefined) return enhancers.namesAround([]);
        const handler: unknown = Reflect.get(bound.class.prototype, bound.key);
        return enhancers.namesAround([bound.class, ...(typeof handler === 'function' ? [handler] : [])]);
      },
      scope: ({ request, ...chosen }) => runs.scopeOf(request, chosen),
      scopeOf: scopeOf && (async (owner) => runs.scopeApart(await scopeOf(owner as never))),
    });
  }
}
