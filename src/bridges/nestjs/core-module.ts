import { type DynamicModule, Inject, Module, type OnModuleInit, type Provider } from '@nestjs/common';
import {
  APP_INTERCEPTOR,
  ApplicationConfig,
  DiscoveryModule,
  DiscoveryService,
  ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import { createRedaction } from '../../invocation/redact.js';
import { TaskQueue } from '../../invocation/task-queue.js';
import { ToolRegistry } from '../../registry/tool-registry.js';
import { ApplicationTools } from './application-tools.js';
import { CallPipeline } from './call-pipeline.js';
import { checkModuleOptions } from './check-options.js';
import { createApplicationTools } from './create-application-tools.js';
import { Enhancers } from './enhancers.js';
import { GIVEN_OPTIONS, MODULE_OPTIONS, type ToolwrightModuleOptions } from './module-options.js';
import { createErrorDescriber } from './public-text.js';
import { RegisteredTools } from './registered-tools.js';
import { RequestContexts } from './request-contexts.js';
import { RequestInterceptor } from './request-interceptor.js';
import { RunSurroundings } from './run-surroundings.js';
import { RunningCalls } from './running-calls.js';
import { ToolCaller } from './tool-caller.js';
import { ToolVisibility } from './tool-visibility.js';
import { ToolwrightService } from './toolwright-service.js';

/** Where the options come from, and what that needs. */
export interface OptionsSource {
  readonly providers: Provider[];
  readonly imports?: DynamicModule['imports'];
}

const PROVIDERS: Provider[] = [
  { provide: MODULE_OPTIONS, useFactory: checkModuleOptions, inject: [GIVEN_OPTIONS] },
  RegisteredTools,
  {
    provide: TaskQueue,
    useFactory: ({ tasks }: ToolwrightModuleOptions) => tasks ?? new TaskQueue(),
    inject: [MODULE_OPTIONS],
  },
  {
    provide: RunningCalls,
    useFactory: (tasks: TaskQueue) => new RunningCalls(tasks),
    inject: [TaskQueue],
  },
  {
    provide: RequestContexts,
    useFactory: (modules: ModuleRef) => new RequestContexts(modules),
    inject: [ModuleRef],
  },
  {
    provide: Enhancers,
    useFactory: (modules: ModulesContainer, config: ApplicationConfig) => new Enhancers({ modules, config }),
    inject: [ModulesContainer, ApplicationConfig],
  },
  {
    provide: ToolVisibility,
    useFactory: (options: ToolwrightModuleOptions) => new ToolVisibility(options),
    inject: [MODULE_OPTIONS],
  },
  {
    provide: ToolCaller,
    useFactory: (
      options: ToolwrightModuleOptions,
      enhancers: Enhancers,
      ...[requests, running, visibility]: [RequestContexts, RunningCalls, ToolVisibility]
    ) => {
      const pipeline = new CallPipeline(
        enhancers,
        createErrorDescriber(options),
        createRedaction(options.redact),
      );
      return new ToolCaller({ enhancers, requests, running, pipeline, visibility });
    },
    inject: [MODULE_OPTIONS, Enhancers, RequestContexts, RunningCalls, ToolVisibility],
  },
  {
    provide: ApplicationTools,
    useFactory: (
      options: ToolwrightModuleOptions,
      caller: ToolCaller,
      ...[tasks, discovery, moduleRef, modules]: [TaskQueue, DiscoveryService, ModuleRef, ModulesContainer]
    ) => createApplicationTools({ options, caller, tasks, discovery, moduleRef, modules }),
    inject: [MODULE_OPTIONS, ToolCaller, TaskQueue, DiscoveryService, ModuleRef, ModulesContainer],
  },
  {
    provide: ToolRegistry,
    useFactory: ({ registry }: ApplicationTools) => registry,
    inject: [ApplicationTools],
  },
  {
    provide: RunSurroundings,
    useFactory: (
      options: ToolwrightModuleOptions,
      registry: ToolRegistry,
      ...[requests, running, modules, visibility]: [RequestContexts, RunningCalls, ModuleRef, ToolVisibility]
    ) => new RunSurroundings({ options, registry, requests, running, modules, visibility }),
    inject: [MODULE_OPTIONS, ToolRegistry, RequestContexts, RunningCalls, ModuleRef, ToolVisibility],
  },
  ToolwrightService,
  {
    provide: APP_INTERCEPTOR,
    useFactory: (requests: RequestContexts) => new RequestInterceptor(requests),
    inject: [RequestContexts],
  },
];

/** Everything that an application has once: the registry, the loop, and what calls its tools. */
@Module({})
export class ToolwrightCoreModule implements OnModuleInit {
  readonly #tools: ApplicationTools;

  constructor(@Inject(ApplicationTools) tools: ApplicationTools) {
    this.#tools = tools;
  }

  static from({ providers, imports = [] }: OptionsSource): DynamicModule {
    return {
      module: ToolwrightCoreModule,
      global: true,
      imports: [DiscoveryModule, ...imports],
      providers: [...providers, ...PROVIDERS],
      exports: [ToolRegistry, ToolwrightService, TaskQueue, RunningCalls, MODULE_OPTIONS],
    };
  }

  /** Global modules come first: by the time that other hooks run, every tool is there. */
  async onModuleInit(): Promise<void> {
    await this.#tools.complete();
  }
}
