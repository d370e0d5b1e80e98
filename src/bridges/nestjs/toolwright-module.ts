import {
  type DynamicModule,
  Inject,
  Module,
  type OnModuleDestroy,
  type Provider,
  type Type,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { ClassType } from '../../contract/class-type.js';
import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import { toolMethods } from '../../metadata/tool-methods.js';
import type { RegisteredTool } from '../../registry/tool-table.js';
import { checkAsyncOptions, checkFeature, createdOptions } from './check-options.js';
import { type OptionsSource, ToolwrightCoreModule } from './core-module.js';
import { FeatureTools } from './feature-tools.js';
import {
  GIVEN_OPTIONS,
  MODULE_OPTIONS,
  type ToolwrightModuleAsyncOptions,
  type ToolwrightModuleOptions,
  type ToolwrightOptionsFactory,
} from './module-options.js';
import { RunningCalls } from './running-calls.js';

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
export class ToolwrightModule implements OnModuleDestroy {
  readonly #running: RunningCalls;
  readonly #limitMs: number;

  constructor(
    @Inject(RunningCalls) running: RunningCalls,
    @Inject(MODULE_OPTIONS) options: ToolwrightModuleOptions,
    @Inject(ModulesContainer) modules: ModulesContainer,
  ) {
    this.#running = running;
    this.#limitMs = options.shutdownTimeoutMs ?? SHUTDOWN_TIMEOUT_MS;
    // Nest destroys modules in the order of their distance from the root. Running calls need what the others
    // give up when they are destroyed, so they are waited for first.
    for (const module of modules.values()) if (module.metatype === ToolwrightModule) module.distance = 0;
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

  async onModuleDestroy(): Promise<void> {
    await this.#running.end(this.#limitMs);
  }
}

/** Holds what `ToolwrightModule.forFeature` was given. */
@Module({})
export class ToolwrightFeatureModule {
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
