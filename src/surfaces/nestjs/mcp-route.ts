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
  type OnModuleDestroy,
  type OnModuleInit,
  Req,
  Res,
  type Type,
  UnauthorizedException,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { checkOptions } from '../../core/errors/author-fault.js';
import { canonicalJson, isRecord } from '../../core/kernel/json.js';
import {
  type NodeRequest,
  nodeListener,
  rawRequestOf,
  type WrappedRequest,
  type WrappedResponse,
} from '../../core/kernel/node-http.js';
import { ANY_VALUE, FILLED_TEXT, LIST, optionTable, protecting } from '../../core/kernel/options.js';
import type { McpRequestInfo, McpToolServer } from '../mcp/server/options.js';
import type { McpServerSettings, VerifiedToken } from '../mcp/server/settings.js';
import { Application, MODULE_OPTIONS } from './application.js';
import type { ToolwrightModuleOptions } from './options.js';
import { nestLogger } from './pipeline.js';

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
const OPTIONS = optionTable<Pick<McpRouteOptions, 'path' | 'guards' | 'oauth'>>('ToolwrightModule, mcp', {
  path: FILLED_TEXT,
  guards: protecting(LIST),
  oauth: ANY_VALUE,
});

type Asking = (NodeRequest | WrappedRequest) & { readonly user?: unknown };
type Answering = ServerResponse | WrappedResponse;

const ROUTE_OPTIONS = Symbol('toolwright.mcp-route');

/** The MCP server of an application. */
class McpRoute implements OnModuleInit, OnModuleDestroy {
  @Inject(Application) private readonly application!: Application;
  @Inject(MODULE_OPTIONS) private readonly module!: ToolwrightModuleOptions;
  @Inject(ROUTE_OPTIONS) private readonly settings!: McpServerSettings;
  @Inject(HttpAdapterHost) private readonly http!: HttpAdapterHost;
  #server!: McpToolServer;

  async onModuleInit(): Promise<void> {
    const { createMcpServer } = await import('../mcp/server/mcp-server.js');
    const { runs, tools } = this.application;
    const { logger = nestLogger() } = this.module;
    this.#server ??= createMcpServer(tools.registry, {
      onError: (error) => logger.error('A request of MCP failed', { error }),
      ...this.settings,
      scope: ({ authInfo }) => (authInfo ? runs.scopeOf(requestFor(authInfo), {}) : {}),
      visible: async ({ authInfo }) => ({ allow: await runs.visibleTo(requestFor(authInfo)) }),
      principal: (authInfo) => this.#principalOf(authInfo),
    });
    this.#publish();
  }

  async onModuleDestroy(): Promise<void> {
    await this.#server?.close();
  }

  /** Serves a caller that the guards accepted. */
  serve(request: Asking, response: Answering): void {
    const authInfo = authInfoOf(request.user);
    this.#answer(request, response, authInfo && { authInfo });
  }

  /** Serves a caller that the guards refused: only public tools, or instructions to sign in. */
  serveRefused(request: Asking, response: Answering, mayUsePublic: boolean): void {
    this.#answer(request, response, mayUsePublic ? {} : { authInfo: null });
  }

  #answer(request: Asking, response: Answering, info: McpRequestInfo = {}): void {
    const { body: parsedBody } = request;
    const given = isRecord(parsedBody) || Array.isArray(parsedBody) ? { ...info, parsedBody } : info;
    nodeListener((asked) => this.#server.fetch(asked, given))(request, response);
  }

  /** Publishes the OAuth metadata without guards and global prefix, so that every client can find where to sign in. */
  #publish(): void {
    const { oauth } = this.settings;
    const { httpAdapter } = this.http;
    // Workers and commands serve no HTTP.
    if (oauth === undefined || !httpAdapter) return;
    const wellKnown = '/.well-known/oauth-protected-resource';
    const { pathname } = new URL(oauth.resource);
    const answer = (request: Asking, response: Answering) => this.serveRefused(request, response, true);
    for (const path of new Set([wellKnown, `${wellKnown}${pathname === '/' ? '' : pathname}`])) {
      httpAdapter.get(path, answer);
      httpAdapter.options(path, answer);
    }
  }

  #principalOf(authInfo: VerifiedToken | undefined): string {
    const { owner } = authInfo ? this.application.runs.scopeOf(requestFor(authInfo), {}) : {};
    return canonicalJson(owner ?? [authInfo?.clientId ?? null, authInfo?.extra?.sub ?? null]);
  }
}

/** Replaces the HTTP request for guards of tools, `owner` and `visible`, because a session outlives the request. */
function requestFor(authInfo: VerifiedToken | undefined): object {
  return authInfo === undefined ? {} : { user: authInfo.extra?.user ?? authInfo.extra };
}

/** The caller that the guards authenticated. */
function authInfoOf(user: unknown): VerifiedToken | undefined {
  if (user === undefined || user === null) return undefined;
  const { scopes, scope, scp, client_id, azp, sub, id } = isRecord(user) ? user : { sub: user };
  const given = scopes ?? scope ?? scp ?? [];
  return {
    token: '',
    clientId: String(client_id ?? azp ?? ''),
    scopes: Array.isArray(given) ? given.map(String) : String(given).split(' ').filter(Boolean),
    extra: { sub: sub ?? id ?? canonicalJson(user), user },
  };
}

/** Answers requests that guards refused in the way that MCP hosts expect: 401 with instructions to sign in. */
@Catch(UnauthorizedException, ForbiddenException)
class SignInFilter extends BaseExceptionFilter {
  readonly #route: McpRoute;
  readonly #isProtected: boolean;

  constructor(
    @Inject(McpRoute) route: McpRoute,
    @Inject(ROUTE_OPTIONS) { oauth }: McpServerSettings,
    @Inject(HttpAdapterHost) { httpAdapter }: HttpAdapterHost,
  ) {
    super(httpAdapter);
    this.#route = route;
    this.#isProtected = oauth !== undefined;
  }

  override catch(exception: unknown, host: ArgumentsHost): unknown {
    const request = host.switchToHttp().getRequest<Asking>();
    const isSignedIn = request.user !== undefined && request.user !== null;
    if (!this.#isProtected || isSignedIn) return super.catch(exception, host);
    const hasToken = rawRequestOf(request).headers.authorization !== undefined;
    const mayUsePublic = exception instanceof UnauthorizedException && !hasToken;
    return this.#route.serveRefused(request, host.switchToHttp().getResponse(), mayUsePublic);
  }
}

@Module({})
class ToolwrightMcpModule {}

/** A module with the MCP server of the application. */
export function mcpModule(given: McpRouteOptions): DynamicModule {
  const { path = 'mcp', guards = [], ...settings } = given;
  checkOptions({ path, guards, oauth: settings.oauth }, OPTIONS);

  @UseGuards(...guards)
  @UseFilters(SignInFilter)
  @Controller(path)
  class ToolwrightMcpController {
    readonly #route: McpRoute;

    constructor(@Inject(McpRoute) route: McpRoute) {
      this.#route = route;
    }

    @All()
    serve(@Req() request: Asking, @Res() response: Answering): void {
      this.#route.serve(request, response);
    }
  }

  return {
    module: ToolwrightMcpModule,
    controllers: [ToolwrightMcpController],
    providers: [McpRoute, SignInFilter, { provide: ROUTE_OPTIONS, useValue: settings }],
  };
}
