import {
  All,
  type CanActivate,
  Controller,
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
  type Provider,
  Req,
  type Type,
  UseGuards,
} from '@nestjs/common';
import {
  APP_INTERCEPTOR,
  ApplicationConfig,
  DiscoveryModule,
  DiscoveryService,
  ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import type { ClassType } from '../../core/contract/declaration.js';
import { type AuthorFault, checkOptions, ToolDeclarationError } from '../../core/errors/author-fault.js';
import { FILLED_TEXT, LIST, oneOf, optionTable, protecting } from '../../core/kernel/options.js';
import { toolMethods } from '../../core/metadata/class-record.js';
import { createRedaction } from '../../run/call/redact.js';
import type { RegisteredTool } from '../../run/call/registration.js';
import { TaskQueue } from '../../run/call/task-queue.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import { ApplicationFleet, type ChatRequestOptions } from './application-fleet.js';
import { ApplicationInspector } from './application-inspector.js';
import { ApplicationRuns } from './application-runs.js';
import { ApplicationTools, createApplicationTools, FeatureTools } from './application-tools.js';
import { RunningCalls } from './calls.js';
import { Enhancers } from './enhancers.js';
import { RegisteredTools } from './handlers.js';
import { destroyFirst } from './nest-internals.js';
import {
  checkAsyncOptions,
  checkFeature,
  checkModuleOptions,
  createdOptions,
  MAY_ANSWER,
  type ToolwrightModuleAsyncOptions,
  type ToolwrightModuleOptions,
  type ToolwrightOptionsFactory,
} from './options.js';
import { CallPipeline, createErrorDescriber } from './pipeline.js';
import { RequestContexts, RequestInterceptor } from './requests.js';
import { ToolCaller, ToolVisibility } from './tool-caller.js';
import { ToolwrightService } from './toolwright-service.js';

/** Token of the options as they were given, or as a factory made them. */
const GIVEN_OPTIONS = Symbol('toolwright.given-options');

/** Token of the checked options of an application's `ToolwrightModule`. */
const MODULE_OPTIONS = Symbol('toolwright.module-options');

const SHUTDOWN_TIMEOUT_MS = 10_000;

const TWO_ROOTS: AuthorFault = {
  where: 'ToolwrightModule.forRoot',
  problem: 'it is imported more than once, and an application has one registry',
  fix: 'forRoot in the root module only; ToolRegistry and ToolwrightService can be injected in every module without an import',
};

/**
 * Makes tools of the `@Tool` methods of an application's providers and controllers, and runs every call of
 * them through Nest's guards, interceptors, pipes and exception filters. `ToolRegistry` and
 * `ToolwrightService`, the loop, can be injected everywhere.
 *
 * Mistakes in declarations are thrown, all together, while the application is created.
 *
 * @example
 * ```ts
 * @Module({
 *   imports: [ToolwrightModule.forRoot({ provider, model: 'gpt-5' })],
 *   providers: [ShopTools, OrderService],
 * })
 * class AppModule {}
 * ```
 */
@Module({})
export class ToolwrightModule implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #fleet: ApplicationFleet;
  readonly #limitMs: number;

  constructor(
    @Inject(ApplicationFleet) fleet: ApplicationFleet,
    @Inject(MODULE_OPTIONS) options: ToolwrightModuleOptions,
    @Inject(ModulesContainer) modules: ModulesContainer,
  ) {
    this.#fleet = fleet;
    this.#limitMs = options.shutdownTimeoutMs ?? SHUTDOWN_TIMEOUT_MS;
    // Running calls need what the others give up when they are destroyed, so they are waited for first.
    destroyFirst(modules, ToolwrightModule);
    const cores = [...modules.values()].filter(({ metatype }) => metatype === ToolwrightCoreModule);
    if (cores.length > 1) throw new ToolDeclarationError([TWO_ROOTS]);
  }

  /** The module for an application's root, with options that are there. */
  static forRoot(options: ToolwrightModuleOptions = {}): DynamicModule {
    return rootModule({ providers: [{ provide: GIVEN_OPTIONS, useValue: options }] });
  }

  /** The module for an application's root, with options from other providers. */
  static forRootAsync(options: ToolwrightModuleAsyncOptions): DynamicModule {
    const { imports, useFactory, inject = [], useClass, useExisting } = checkAsyncOptions(options);
    if (useFactory !== undefined)
      return rootModule({ imports, providers: [{ provide: GIVEN_OPTIONS, useFactory, inject }] });
    const factory = (useExisting ?? useClass) as Type<ToolwrightOptionsFactory>;
    const created: Provider = {
      provide: GIVEN_OPTIONS,
      useFactory: createdOptions,
      inject: [factory],
    };
    return rootModule({ imports, providers: useExisting ? [created] : [created, factory] });
  }

  /**
   * Tools of a feature: classes become providers of a module of their own (what they inject comes from
   * `imports` or from global modules), and tools without a class are registered.
   */
  static forFeature(
    tools: readonly (ClassType | RegisteredTool)[],
    { imports = [] }: Pick<DynamicModule, 'imports'> = {},
  ): DynamicModule {
    const given = checkFeature(tools);
    const classes = given.filter(isToolClass);
    const others = given.filter((tool): tool is RegisteredTool => !isToolClass(tool));
    return {
      module: ToolwrightFeatureModule,
      imports,
      providers: [...classes, { provide: FeatureTools, useValue: new FeatureTools(others) }] as Provider[],
      exports: classes as Provider[],
    };
  }

  /**
   * A ready route of chats, for who wants none of their own: `POST /chat`, `GET` and `DELETE /chat/:id/stream`,
   * `GET /chat/:id/messages`. The application's guards see its requests, and `owner` of the options of `forRoot` says
   * whose a chat is.
   *
   * @example
   * ```ts
   * @Module({
   *   imports: [
   *     ToolwrightModule.forRoot({
   *       provider,
   *       model: 'gpt-5',
   *       store: new SqliteRunStore({ path: 'chats.sqlite' }),
   *       owner: ({ user }: { user: { id: string } }) => ({ user: user.id }),
   *     }),
   *     ToolwrightModule.forChat({ path: 'api/chat' }),
   *   ],
   *   providers: [ShopTools, OrderService],
   * })
   * class AppModule {}
   * ```
   */
  static forChat(options: ChatRouteOptions = {}): DynamicModule {
    return { module: ToolwrightChatModule, controllers: [chatController(options)] };
  }

  /** Whoever works for others has everything by then. */
  onApplicationBootstrap(): void {
    this.#fleet.begin();
  }

  async onModuleDestroy(): Promise<void> {
    await this.#fleet.end(this.#limitMs);
  }
}

/** Holds the routes that `ToolwrightModule.forChat` has made. */
@Module({})
class ToolwrightChatModule {}

/** Holds what `ToolwrightModule.forFeature` was given. */
@Module({})
class ToolwrightFeatureModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    const hasRoot = [...modules.values()].some(({ metatype }) => metatype === ToolwrightCoreModule);
    if (!hasRoot) throw new ToolDeclarationError([NO_ROOT]);
  }
}

const NO_ROOT: AuthorFault = {
  where: 'ToolwrightModule.forFeature',
  problem: 'the application has no ToolwrightModule.forRoot, so that nobody would find these tools',
  fix: 'imports: [ToolwrightModule.forRoot({ provider, model })] in the root module',
};

function rootModule(source: OptionsSource): DynamicModule {
  return { module: ToolwrightModule, imports: [ToolwrightCoreModule.from(source)] };
}

function isToolClass(tool: ClassType | RegisteredTool): tool is ClassType {
  return typeof tool === 'function' && toolMethods(tool as ClassType).length > 0;
}

/** Where the options come from, and what that needs. */
interface OptionsSource {
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
    useFactory: (modules: ModulesContainer, config: ApplicationConfig) => new Enhancers(modules, config),
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
    provide: ApplicationRuns,
    useFactory: (
      options: ToolwrightModuleOptions,
      registry: ToolRegistry,
      ...[requests, running, modules, visibility]: [RequestContexts, RunningCalls, ModuleRef, ToolVisibility]
    ) => new ApplicationRuns({ options, registry, requests, running, modules, visibility }),
    inject: [MODULE_OPTIONS, ToolRegistry, RequestContexts, RunningCalls, ModuleRef, ToolVisibility],
  },
  {
    provide: ApplicationFleet,
    useFactory: (
      options: ToolwrightModuleOptions,
      registry: ToolRegistry,
      ...[runs, running]: [ApplicationRuns, RunningCalls]
    ) => new ApplicationFleet({ options, registry, runs, running }),
    inject: [MODULE_OPTIONS, ToolRegistry, ApplicationRuns, RunningCalls],
  },
  {
    provide: ApplicationInspector,
    useFactory: (
      options: ToolwrightModuleOptions,
      registry: ToolRegistry,
      ...[runs, enhancers]: [ApplicationRuns, Enhancers]
    ) => new ApplicationInspector({ options, registry, runs, enhancers }),
    inject: [MODULE_OPTIONS, ToolRegistry, ApplicationRuns, Enhancers],
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
class ToolwrightCoreModule implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  readonly #tools: ApplicationTools;
  readonly #inspector: ApplicationInspector;

  constructor(
    @Inject(ApplicationTools) tools: ApplicationTools,
    @Inject(ApplicationInspector) inspector: ApplicationInspector,
  ) {
    this.#tools = tools;
    this.#inspector = inspector;
  }

  static from({ providers, imports = [] }: OptionsSource): DynamicModule {
    return {
      module: ToolwrightCoreModule,
      global: true,
      imports: [DiscoveryModule, ...imports],
      providers: [...providers, ...PROVIDERS],
      exports: [
        ToolRegistry,
        ToolwrightService,
        TaskQueue,
        ApplicationFleet,
        ApplicationInspector,
        MODULE_OPTIONS,
      ],
    };
  }

  /** Global modules come first: by the time that other hooks run, every tool is there. */
  async onModuleInit(): Promise<void> {
    await this.#tools.complete();
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.#inspector.begin();
  }

  /** What is held is let go, so that it can end. */
  async onModuleDestroy(): Promise<void> {
    await this.#inspector.end();
  }
}

/** A ready route of chats. */
export interface ChatRouteOptions extends Pick<ChatRequestOptions, 'protocol' | 'mayAnswer'> {
  /** Default: `chat`. */
  readonly path?: string;
  /** Guards of this route, beside the application's own. */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
}

const OPTIONS = optionTable<ChatRouteOptions>('ToolwrightModule.forChat', {
  path: FILLED_TEXT,
  protocol: oneOf('ui-messages', 'ag-ui', 'events'),
  mayAnswer: MAY_ANSWER,
  guards: protecting(LIST),
});

/** A controller that answers the requests of chats below a path, for a module of its own. */
function chatController(options: ChatRouteOptions): Type {
  checkOptions(options, OPTIONS);
  const { path = 'chat', guards = [], ...settings } = options;

  @UseGuards(...guards)
  @Controller(path)
  class ToolwrightChatController {
    readonly #toolwright: ToolwrightService;

    constructor(@Inject(ToolwrightService) toolwright: ToolwrightService) {
      this.#toolwright = toolwright;
    }

    @All(['', ':id/stream', ':id/messages'])
    chat(@Req() request: object): Promise<Response | undefined> {
      return this.#toolwright.chat(request, settings);
    }
  }
  return ToolwrightChatController;
}
