import type { ServerResponse } from 'node:http';
import {
  All,
  type ArgumentsHost,
  type CanActivate,
  Catch,
  Controller,
  type DynamicModule,
  ForbiddenException,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
  Optional,
  type Provider,
  Req,
  Res,
  type Type,
  UnauthorizedException,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import {
  APP_INTERCEPTOR,
  BaseExceptionFilter,
  DiscoveryModule,
  HttpAdapterHost,
  ModulesContainer,
} from '@nestjs/core';
import type { ClassType } from '../../core/contract/declaration.js';
import {
  type AuthorFault,
  checkOptions,
  type InvalidOption,
  InvalidOptionsError,
  refuseOptions,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { canonicalJson, type Fields, isObject, isRecord } from '../../core/kernel/json.js';
import {
  type NodeRequest,
  nodeListener,
  rawRequestOf,
  type WrappedRequest,
  type WrappedResponse,
} from '../../core/kernel/node-http.js';
import {
  ANY_VALUE,
  FILLED_TEXT,
  FUNCTION,
  LIST,
  optionTable,
  protecting,
  RECORD,
} from '../../core/kernel/options.js';
import { toolMethods } from '../../core/metadata/class-record.js';
import { safeLog } from '../../run/call/log.js';
import { TaskQueue } from '../../run/call/task-queue.js';
import { type RegisteredTool, ToolRegistry } from '../../run/call/tool-registry.js';
import { keepsConversations } from '../../run/conversation/conversations-options.js';
import { CHAT_RULES } from '../chat/create-chat-handler.js';
import type { McpRequestInfo, McpToolServer } from '../mcp/server/options.js';
import { grantOf, type McpServerSettings, type VerifiedToken } from '../mcp/server/settings.js';
import {
  Application,
  type ApplicationFleet,
  ApplicationParts,
  type ChatRequestOptions,
  FeatureTools,
  MODULE_OPTIONS,
} from './application.js';
import { scopesOfUser } from './application-runs.js';
import { RequestContexts, RequestInterceptor } from './calls.js';
import { RegisteredTools } from './handlers.js';
import { destroyFirst } from './nest-internals.js';
import {
  ANSWERS_FOR_NOBODY,
  checkModuleOptions,
  NO_CONVERSATIONS,
  NO_OWNER,
  type ToolwrightModuleAsyncOptions,
  type ToolwrightModuleOptions,
  type ToolwrightOptionsFactory,
} from './options.js';
import { nestLogger } from './pipeline.js';
import { ToolwrightService } from './toolwright-service.js';

/**
 * An MCP server as a route of the application. The route's guards check every request. The caller is `request.user`;
 * its `scopes` (or `scope`, `scp`) are compared with those of the tools.
 */
export interface McpRouteOptions extends McpServerSettings {
  /** Default: `mcp`. */
  readonly path?: string;
  /** Guards of this route, in addition to the application's own. */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
}

/** `createMcpServer` checks the other options. */
const MCP_ROUTE_OPTIONS = optionTable<Pick<McpRouteOptions, 'path' | 'guards' | 'oauth'>>(
  'ToolwrightModule, mcp',
  {
    path: FILLED_TEXT,
    guards: protecting(LIST),
    oauth: ANY_VALUE,
  },
);

type Asking = (NodeRequest | WrappedRequest) & { readonly user?: unknown };
type Answering = ServerResponse | WrappedResponse;
type Refusal = UnauthorizedException | ForbiddenException;

/** The route of the MCP server. */
interface McpEntry {
  readonly controller: Type;
  readonly path: string;
  readonly settings: McpServerSettings;
}

const MCP_ENTRY = Symbol('toolwright.mcp-entry');

/** The MCP server of an application. */
class McpRoute implements OnModuleInit, OnModuleDestroy {
  @Inject(Application) private readonly application!: Application;
  @Inject(MODULE_OPTIONS) private readonly module!: ToolwrightModuleOptions;
  @Inject(MCP_ENTRY) private readonly entry!: McpEntry;
  @Inject(HttpAdapterHost) private readonly http!: HttpAdapterHost;
  readonly #warnings = new Set<string>();
  #server!: McpToolServer;

  async onModuleInit(): Promise<void> {
    const { createMcpServer } = await import('../mcp/server/mcp-server.js');
    const { runs, tools } = this.application;
    const { logger = nestLogger() } = this.module;
    this.#server ??= createMcpServer(tools.registry, {
      onError: (error) => logger.error('An MCP request failed', { error }),
      ...this.entry.settings,
      scope: ({ authInfo }) =>
        authInfo ? runs.scopeOf(requestFor(authInfo), { scopes: authInfo.scopes }) : {},
      visible: async ({ authInfo }) => ({ allow: await runs.visibleTo(requestFor(authInfo)) }),
      principal: (authInfo) => {
        const { owner } = authInfo ? runs.scopeOf(requestFor(authInfo), {}) : {};
        return canonicalJson(owner ?? [authInfo?.clientId ?? null, authInfo?.extra?.sub ?? null]);
      },
    });
    // Clients find out where to sign in without guards and without the global prefix.
    const { oauth } = this.entry.settings;
    const { httpAdapter } = this.http;
    // Workers and commands serve no HTTP.
    if (oauth === undefined || !httpAdapter) return;
    const wellKnown = '/.well-known/oauth-protected-resource';
    const { pathname } = new URL(oauth.resource);
    const answer = (request: Asking, response: Answering) => this.#answer(request, response);
    for (const path of new Set([wellKnown, `${wellKnown}${pathname === '/' ? '' : pathname}`])) {
      httpAdapter.get(path, answer);
      httpAdapter.options(path, answer);
    }
  }

  async onModuleDestroy(): Promise<void> {
    await this.#server?.close();
  }

  /** Serves a caller that the guards accepted. */
  serve(request: Asking, response: Answering): void {
    const { user } = request;
    if (user === undefined || user === null) {
      this.#answer(request, response);
      return;
    }
    const claims: Fields = isRecord(user) ? user : { sub: user };
    const { sub, id } = claims;
    const extra = { sub: sub ?? id ?? canonicalJson(user), user };
    const authInfo: VerifiedToken = { token: '', ...grantOf(claims, scopesOfUser(user)), extra };
    this.#answer(request, response, { authInfo });
  }

  /**
   * Serves a caller that the guards refused: only public tools, or instructions to sign in. Returns `false` if the
   * refusal has nothing to do with the sign-in.
   */
  serveRefused(refusal: Refusal, request: Asking, response: Answering): boolean {
    const { oauth } = this.entry.settings;
    if (oauth === undefined || (request.user !== undefined && request.user !== null)) return false;
    const hasToken = rawRequestOf(request).headers.authorization !== undefined;
    if (hasToken && oauth.verify !== undefined) this.#warnOfGuard(refusal);
    const mayUsePublic = refusal instanceof UnauthorizedException && !hasToken;
    this.#answer(request, response, mayUsePublic ? {} : { authInfo: null });
    return true;
  }

  /** Warns of a guard that refuses tokens which only `verify` knows: the client reads that its token is invalid. */
  #warnOfGuard({ stack = '' }: Error): void {
    const { controller, path } = this.entry;
    const around = this.application.enhancers.namesAround([controller]);
    const guards = around.flatMap(({ kind, name }) => (kind === 'guard' ? [name] : []));
    // Nest throws for a guard that returns false; its own stack names no guard.
    const [, thrower] = /\bat (?:async )?([\w$]+)\.canActivate\b/.exec(stack) ?? [];
    const named = thrower ?? guards.join(' or ');
    const text = `A guard${named && ` (${named})`} refused an MCP request before mcp.oauth.verify checked its token: a guard that cannot check these tokens must allow requests to '${path}'`;
    if (this.#warnings.has(text)) return;
    this.#warnings.add(text);
    const { logger = nestLogger() } = this.module;
    safeLog(logger).warn(text);
  }

  #answer(request: Asking, response: Answering, info: McpRequestInfo = {}): void {
    const { body: parsedBody } = request;
    const given = isRecord(parsedBody) || Array.isArray(parsedBody) ? { ...info, parsedBody } : info;
    nodeListener((asked) => this.#server.fetch(asked, given))(request, response);
  }
}

/** Replaces the HTTP request for guards of tools, `owner` and `visible`, because a session outlives the request. */
function requestFor(authInfo: VerifiedToken | undefined): object {
  return authInfo === undefined ? {} : { user: authInfo.extra?.user ?? authInfo.extra };
}

/** Answers requests that guards refused in the way that MCP hosts expect: 401 with instructions to sign in. */
@Catch(UnauthorizedException, ForbiddenException)
class SignInFilter extends BaseExceptionFilter {
  @Inject(McpRoute) private readonly route!: McpRoute;

  override catch(refusal: Refusal, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    if (!this.route.serveRefused(refusal, http.getRequest(), http.getResponse())) super.catch(refusal, host);
  }
}

@Module({})
class ToolwrightMcpModule {}

const ASYNC_OPTIONS = optionTable<ToolwrightModuleAsyncOptions & { readonly mcp?: object }>(
  'ToolwrightModule.forRootAsync',
  {
    imports: LIST,
    mcp: RECORD,
    useFactory: FUNCTION,
    inject: LIST,
    useClass: FUNCTION,
    useExisting: ANY_VALUE,
  },
);

const ONE_WAY: InvalidOption = {
  where: 'ToolwrightModule.forRootAsync',
  option: 'useFactory',
  problem: 'it needs exactly one of useFactory, useClass and useExisting',
  fix: 'useFactory: (config) => ({ provider, model: config.model }), inject: [Config]',
};

/** The options that a class given as `useClass` or `useExisting` creates. */
function createdOptions(factory: Partial<ToolwrightOptionsFactory>): unknown {
  if (typeof factory?.createToolwrightOptions === 'function') return factory.createToolwrightOptions();
  const fault: InvalidOption = {
    where: ASYNC_OPTIONS.of,
    option: 'useClass',
    problem: `${factory?.constructor.name ?? 'the injected value'} has no method createToolwrightOptions`,
    fix: 'a class with createToolwrightOptions() { return { provider, model }; }',
  };
  throw new InvalidOptionsError([fault]);
}

/** Token of the options before they are checked. */
const GIVEN_OPTIONS = Symbol('toolwright.given-options');

const SHUTDOWN_TIMEOUT_MS = 10_000;

const TWO_ROOTS: AuthorFault = {
  where: 'ToolwrightModule.forRoot',
  problem: 'it is imported more than once, but an application has one registry',
  fix: 'forRoot in the root module only; ToolRegistry and ToolwrightService can be injected in every module without an import',
};

/**
 * Makes tools of the `@Tool` methods of an application's providers and controllers. All their calls pass Nest's guards,
 * interceptors, pipes and exception filters. `ToolRegistry`, and `ToolwrightService` for the loop, can be injected
 * everywhere.
 *
 * Mistakes in declarations are thrown together while the application is created.
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
    @Inject(Application) { fleet }: Application,
    @Inject(MODULE_OPTIONS) options: ToolwrightModuleOptions,
    @Inject(ModulesContainer) modules: ModulesContainer,
  ) {
    this.#fleet = fleet;
    this.#limitMs = options.shutdownTimeoutMs ?? SHUTDOWN_TIMEOUT_MS;
    // This module is destroyed first: it waits for running calls, which need the other modules.
    destroyFirst(modules, ToolwrightModule);
    const cores = [...modules.values()].filter(({ metatype }) => metatype === ToolwrightCoreModule);
    if (cores.length > 1) throw new ToolDeclarationError([TWO_ROOTS]);
  }

  /** The module for an application's root; with `mcp`, the tools are also served over MCP. */
  static forRoot(options: ToolwrightModuleOptions & McpOption = {}): DynamicModule {
    // From JavaScript it may be any value; that is reported while the application is created.
    const { mcp, ...others } = options ?? {};
    const given = isObject(options) ? others : options;
    return rootModule({ providers: [{ provide: GIVEN_OPTIONS, useValue: given }], mcp });
  }

  /** The module for an application's root, with options from other providers. */
  static forRootAsync(options: ToolwrightModuleAsyncOptions & McpOption): DynamicModule {
    checkOptions(options, ASYNC_OPTIONS);
    const { imports, useFactory, inject = [], useClass, useExisting, mcp } = options;
    const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
    refuseOptions(ways.length === 1 ? [] : [ONE_WAY]);
    if (useFactory !== undefined)
      return rootModule({ imports, providers: [{ provide: GIVEN_OPTIONS, useFactory, inject }], mcp });
    const factory = (useExisting ?? useClass) as Type<ToolwrightOptionsFactory>;
    const created: Provider = {
      provide: GIVEN_OPTIONS,
      useFactory: createdOptions,
      inject: [factory],
    };
    return rootModule({ imports, providers: useExisting ? [created] : [created, factory], mcp });
  }

  /**
   * Tools of a feature. Classes become providers of a module of their own: what they inject comes from `imports` or
   * from global modules. Tools without a class are registered.
   */
  static forFeature(
    tools: readonly (ClassType | RegisteredTool)[],
    { imports = [] }: Pick<DynamicModule, 'imports'> = {},
  ): DynamicModule {
    if (!Array.isArray(tools)) {
      const given = tools === undefined ? 'undefined' : `a ${typeof tools}`;
      const problem = `it received ${given} instead of a list of tools`;
      const causes = ['files import each other in a circle, so that the imported name is still undefined'];
      const fix = 'forFeature([OrderTools, calculateTool])';
      throw new ToolDeclarationError([{ where: 'ToolwrightModule.forFeature', problem, causes, fix }]);
    }
    const classes = tools.filter(isToolClass);
    const others = tools.filter((tool): tool is RegisteredTool => !isToolClass(tool));
    return {
      module: ToolwrightFeatureModule,
      imports,
      providers: [...classes, { provide: FeatureTools, useValue: new FeatureTools(others) }] as Provider[],
      exports: classes as Provider[],
    };
  }

  /**
   * Ready-made chat routes: `POST /chat`, `GET` and `DELETE /chat/:id/stream`, `GET /chat/:id/messages`. The
   * application's guards check the requests, and `owner` in the options of `forRoot` determines the owner of a chat.
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
    checkOptions(options, CHAT_ROUTE_OPTIONS);
    const { path = 'chat', guards = [], ...settings } = options;

    @UseGuards(...guards)
    @Controller(path)
    class ToolwrightChatController {
      @Inject(ToolwrightService) private readonly toolwright!: ToolwrightService;

      @All(['', ':id/stream', ':id/messages'])
      chat(@Req() request: object): Promise<Response | undefined> {
        return this.toolwright.chat(request, settings);
      }
    }

    return {
      module: ToolwrightChatModule,
      controllers: [ToolwrightChatController],
      providers: [{ provide: CHAT_ROUTE, useValue: options }],
    };
  }

  /** Starts working only now, when everything that work needs is ready. */
  onApplicationBootstrap(): void {
    this.#fleet.begin();
  }

  async onModuleDestroy(): Promise<void> {
    await this.#fleet.end(this.#limitMs);
  }
}

const CHAT_ROUTE = Symbol('toolwright.chat-route');

/** Contains the routes of `ToolwrightModule.forChat`. */
@Module({})
class ToolwrightChatModule {
  constructor(
    @Optional() @Inject(MODULE_OPTIONS) options: ToolwrightModuleOptions | undefined,
    @Inject(CHAT_ROUTE) route: ChatRouteOptions,
  ) {
    if (options === undefined) throw new ToolDeclarationError([CHAT_WITHOUT_ROOT]);
    const { owner, store, provider, model, worker, scopeOf } = options;
    // With `worker: false`, another process takes the turns.
    const takesTurns = worker !== false;
    const fix = "forRoot({ provider, model: 'gpt-5' })";
    const faults = [
      owner === undefined && NO_OWNER,
      !keepsConversations(store) && NO_CONVERSATIONS,
      takesTurns &&
        provider === undefined && { option: 'provider', problem: 'the turns of chats need a provider', fix },
      takesTurns &&
        model === undefined && { option: 'model', problem: 'the turns of chats need a model', fix },
      route.mayAnswer !== undefined && scopeOf === undefined && ANSWERS_FOR_NOBODY,
    ].filter((fault) => fault !== false);
    // Otherwise each request of the routes would fail.
    refuseOptions(faults.map((fault) => ({ ...fault, where: 'ToolwrightModule.forChat' })));
  }
}

/** Contains what `ToolwrightModule.forFeature` was given. */
@Module({})
class ToolwrightFeatureModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    const hasRoot = [...modules.values()].some(({ metatype }) => metatype === ToolwrightCoreModule);
    if (!hasRoot) throw new ToolDeclarationError([NO_ROOT]);
  }
}

const CHAT_WITHOUT_ROOT: AuthorFault = {
  where: 'ToolwrightModule.forChat',
  problem: 'the application has no ToolwrightModule.forRoot, whose options its chats need',
  fix: 'imports: [ToolwrightModule.forRoot({ provider, model, store, owner })] in the root module',
};

const NO_ROOT: AuthorFault = {
  where: 'ToolwrightModule.forFeature',
  problem: 'the application has no ToolwrightModule.forRoot, which registers these tools',
  fix: 'imports: [ToolwrightModule.forRoot({ provider, model })] in the root module',
};

/** The module for an application's root; with `mcp`, also a module with its MCP server. */
function rootModule({ mcp, ...source }: OptionsSource & McpOption): DynamicModule {
  const core = ToolwrightCoreModule.from(source);
  if (mcp === undefined) return { module: ToolwrightModule, imports: [core] };
  const { path = 'mcp', guards = [], ...settings } = mcp;
  checkOptions({ path, guards, oauth: settings.oauth }, MCP_ROUTE_OPTIONS);

  @UseGuards(...guards)
  @UseFilters(SignInFilter)
  @Controller(path)
  class ToolwrightMcpController {
    @Inject(McpRoute) private readonly route!: McpRoute;

    @All()
    serve(@Req() request: Asking, @Res() response: Answering): void {
      this.route.serve(request, response);
    }
  }

  const route: DynamicModule = {
    module: ToolwrightMcpModule,
    controllers: [ToolwrightMcpController],
    providers: [
      McpRoute,
      SignInFilter,
      {
        provide: MCP_ENTRY,
        useValue: { controller: ToolwrightMcpController, path, settings } satisfies McpEntry,
      },
    ],
  };
  return { module: ToolwrightModule, imports: [core, route] };
}

function isToolClass(tool: ClassType | RegisteredTool): tool is ClassType {
  return typeof tool === 'function' && toolMethods(tool as ClassType).length > 0;
}

/** Separate from the other options, because routes are needed before a factory creates these. */
interface McpOption {
  /** Serves the tools over MCP as a route of the application, behind its guards. */
  readonly mcp?: McpRouteOptions | undefined;
}

/** The source of the options, with its dependencies. */
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
  RequestContexts,
  ApplicationParts,
  Application,
  {
    provide: ToolRegistry,
    useFactory: ({ tools }: Application) => tools.registry,
    inject: [Application],
  },
  ToolwrightService,
  { provide: APP_INTERCEPTOR, useClass: RequestInterceptor },
];

/** Contains what exists once per application. */
@Module({})
class ToolwrightCoreModule implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  @Inject(Application) private readonly application!: Application;

  static from({ providers, imports = [] }: OptionsSource): DynamicModule {
    return {
      module: ToolwrightCoreModule,
      global: true,
      imports: [DiscoveryModule, ...imports],
      providers: [...providers, ...PROVIDERS],
      exports: [ToolRegistry, ToolwrightService, TaskQueue, Application, MODULE_OPTIONS],
    };
  }

  /** Global modules are initialized first, so all tools exist when other hooks run. */
  async onModuleInit(): Promise<void> {
    await this.application.tools.complete();
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.application.inspector.begin();
  }

  /** Releases what the module holds, so that the process can end. */
  async onModuleDestroy(): Promise<void> {
    await this.application.inspector.end();
  }
}

/** Options of a ready-made chat route. */
export interface ChatRouteOptions extends Pick<ChatRequestOptions, 'protocol' | 'mayAnswer'> {
  /** Default: `chat`. */
  readonly path?: string;
  /** Guards of this route, in addition to the application's own. */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
}

const CHAT_ROUTE_OPTIONS = optionTable<ChatRouteOptions>('ToolwrightModule.forChat', {
  path: FILLED_TEXT,
  protocol: CHAT_RULES.protocol,
  mayAnswer: CHAT_RULES.mayAnswer,
  guards: protecting(LIST),
});
