import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  Injectable,
  type Type,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { Prompt, Public, Resource, Tool, ToolContext, type ToolOptions } from 'toolwright';
import { jwks } from 'toolwright/mcp';
import { type McpRouteOptions, ToolwrightModule, type ToolwrightModuleOptions } from 'toolwright/nestjs';
import { ERAS } from '../mcp/mcp-connections.js';
import { HEADERS } from '../mcp/raw-requests.js';
import { tokenIssuer } from '../mcp/token-issuer.js';
import { boot } from './boot.js';

const RESOURCE = 'https://api.example.org/mcp';
const METADATA = 'https://api.example.org/.well-known/oauth-protected-resource/mcp';
const issuer = await tokenIssuer(RESOURCE);

interface Asking {
  readonly headers: Readonly<Record<string, string | undefined>>;
  user?: { readonly id: string; readonly scopes: readonly string[] } | undefined;
}

/** Signs in requests with `Bearer <name>:<scope>,<scope>`; others get 401, and the user `banned` gets 403. */
@Injectable()
class SignedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Asking | undefined>();
    if (request?.headers === undefined) return true;
    const [, id, scopes = ''] = /^Bearer (\w+):(.*)$/.exec(request.headers.authorization ?? '') ?? [];
    if (id === undefined) throw new UnauthorizedException();
    request.user = { id, scopes: scopes.split(',') };
    return id !== 'banned';
  }
}

/** Refuses every request without a user by returning false. */
@Injectable()
class PlainGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<Asking | undefined>()?.user !== undefined;
  }
}

@Injectable()
class Shop {
  @Public()
  @Tool('Opening hours')
  hours(): string {
    return '9 to 18';
  }

  @Tool('Who am I')
  who(context: ToolContext): string {
    return JSON.stringify(context.owner);
  }

  @Tool({ description: 'Cancel an order', scopes: ['orders:write'] })
  cancel(): string {
    return 'cancelled';
  }
}

const applications: INestApplication[] = [];

afterEach(async () => {
  for (const application of applications.splice(0)) await application.close();
});

const OAUTH = { resource: RESOURCE, issuer: issuer.issuer };

async function open(
  mcp: McpRouteOptions,
  {
    options = {},
    guard = SignedIn,
    providers = [],
  }: { options?: ToolwrightModuleOptions; guard?: Type<CanActivate> | null; providers?: Type[] } = {},
): Promise<URL> {
  const owned: ToolwrightModuleOptions = {
    owner: ({ user }: Asking) => (user === undefined ? undefined : { user: user.id }),
    ...options,
  };
  const guards = guard === null ? [] : [{ provide: APP_GUARD, useClass: guard }];
  const root = {
    module: class AppModule {},
    imports: [ToolwrightModule.forRoot({ ...owned, mcp })],
    providers: [Shop, ...guards, ...providers],
  };
  const application = await NestFactory.create(root, { logger: false, abortOnError: false });
  application.setGlobalPrefix('api');
  applications.push(application);
  await application.listen(0, '127.0.0.1');
  const { port } = application.getHttpServer().address() as AddressInfo;
  return new URL(`http://127.0.0.1:${port}/api/mcp`);
}

async function connect(url: URL, token?: string, options = {}): Promise<Client> {
  const client = new Client({ name: 'a-client', version: '1' }, options);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

const post = (url: URL, token?: string, name = 'who'): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { ...HEADERS, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }),
  });

test.each(Object.entries(ERAS))(
  'forRoot({ mcp }) serves the tools as a route behind the guards of the application, to clients of %s',
  async (_, options) => {
    const url = await open({ oauth: OAUTH, name: 'shop' });
    const client = await connect(url, 'ada:orders:write', options);
    expect(client.getServerVersion()).toMatchObject({ name: 'shop' });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['hours', 'who', 'cancel']);
    expect(await client.callTool({ name: 'who' })).toMatchObject({ content: [{ text: '{"user":"ada"}' }] });
    expect(await client.callTool({ name: 'cancel' })).toMatchObject({ content: [{ text: 'cancelled' }] });
    await client.close();
  },
);

test('callers that the guards refuse can call public tools, and get 401 with the way to sign in for others', async () => {
  const url = await open({ oauth: OAUTH });
  const client = await connect(url);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['hours']);
  expect(await client.callTool({ name: 'hours' })).toMatchObject({ content: [{ text: '9 to 18' }] });
  await client.close();
  const refused = await post(url);
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toContain(`resource_metadata="${METADATA}"`);
  const unknown = await post(url, 'not a token', 'hours');
  expect(unknown.status).toBe(401);
  expect(unknown.headers.get('www-authenticate')).toContain('error="invalid_token"');
});

test('a caller that the guards recognize and refuse gets 403, even for a public tool', async () => {
  const url = await open({ oauth: OAUTH });
  const banned = await post(url, 'banned:orders:write', 'hours');
  expect(banned.status).toBe(403);
  expect(banned.headers.get('www-authenticate')).toBeNull();
});

test('a guard that only returns false also leads to 401 with the way to sign in, even for a public tool', async () => {
  const url = await open({ oauth: OAUTH }, { guard: PlainGuard });
  const refused = await post(url, undefined, 'hours');
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toContain(`resource_metadata="${METADATA}"`);
});

test('arguments that are nested too deep are an error of the client', async () => {
  const url = await open({ oauth: OAUTH });
  const deep = '['.repeat(40_000) + ']'.repeat(40_000);
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'who', arguments: { a: 'DEEP' } },
  };
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...HEADERS, authorization: 'Bearer ada:' },
    body: JSON.stringify(call).replace('"DEEP"', deep),
  });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('at most 500 levels')]);
});

test('scopes come from the user that the guards have set', async () => {
  const url = await open({ oauth: OAUTH });
  const refused = await post(url, 'ada:orders:read', 'cancel');
  expect(refused.status).toBe(403);
  expect(refused.headers.get('www-authenticate')).toContain('scope="orders:write"');
});

test('the RFC 9728 document is served without guards and without the global prefix', async () => {
  const url = await open({ oauth: OAUTH });
  for (const path of ['/.well-known/oauth-protected-resource', new URL(METADATA).pathname]) {
    const response = await fetch(new URL(path, url));
    expect(await response.json()).toMatchObject({ resource: RESOURCE, scopes_supported: ['orders:write'] });
  }
});

test('prompts and resources of providers are served behind the guards of their class', async () => {
  @Injectable()
  class OnlyAda implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      return context.switchToHttp().getRequest<Asking>().user?.id === 'ada';
    }
  }

  @Injectable()
  @UseGuards(OnlyAda)
  class Papers {
    @Prompt('Write a letter')
    letter(): string {
      return 'Dear Sir';
    }

    @Resource('papers://{id}')
    paper(id: string): string {
      return `paper ${id}`;
    }
  }
  const url = await open({ oauth: OAUTH }, { providers: [Papers, OnlyAda] });
  const ada = await connect(url, 'ada:');
  expect((await ada.listPrompts()).prompts).toMatchObject([{ name: 'letter' }]);
  expect(await ada.getPrompt({ name: 'letter' })).toMatchObject({
    messages: [{ content: { text: 'Dear Sir' } }],
  });
  expect(await ada.readResource({ uri: 'papers://7' })).toMatchObject({ contents: [{ text: 'paper 7' }] });
  const bob = await connect(url, 'bob:');
  await expect(bob.getPrompt({ name: 'letter' })).rejects.toThrow('Forbidden');
  await expect(bob.readResource({ uri: 'papers://7' })).rejects.toThrow('Forbidden');
  await ada.close();
  await bob.close();
});

test('with `verify`, the route authenticates callers itself, and the claims of the token are the user', async () => {
  const url = await open(
    { oauth: { ...OAUTH, verify: jwks(issuer.keys) } },
    {
      guard: null,
      options: { owner: ({ user }: { user?: { sub: string } }) => (user ? { user: user.sub } : undefined) },
    },
  );
  expect((await post(url)).status).toBe(401);
  const client = await connect(url, await issuer.issue({ sub: 'bob' }));
  expect(await client.callTool({ name: 'who' })).toMatchObject({ content: [{ text: '{"user":"bob"}' }] });
  await client.close();
});

test.each([
  ['throws', SignedIn],
  ['returns false', PlainGuard],
])('with `verify`, a guard that %s for MCP tokens is reported once in the log', async (_how, guard) => {
  const warnings: string[] = [];
  const ignore = () => {};
  const warn = (text: string) => {
    // There are also warnings about classes of other tests.
    if (text.startsWith('A guard')) warnings.push(text);
  };
  const logger = { debug: ignore, info: ignore, error: ignore, warn };
  @Injectable()
  class OpenToAll implements CanActivate {
    canActivate(): boolean {
      return true;
    }
  }
  const verifying = { ...OAUTH, verify: jwks(issuer.keys) };
  const url = await open({ oauth: verifying, guards: [OpenToAll] }, { guard, options: { logger } });
  expect((await post(url)).status).toBe(401);
  expect(warnings).toEqual([]);
  const token = await issuer.issue({ sub: 'bob' });
  for (const refused of [await post(url, token), await post(url, token)]) {
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
  }
  const named = guard === SignedIn ? 'SignedIn' : 'PlainGuard or OpenToAll';
  expect(warnings).toEqual([
    `A guard (${named}) refused an MCP request before mcp.oauth.verify checked its token: a guard that cannot check these tokens must allow requests to 'mcp'`,
  ]);
});

test('without `oauth`, the route is an ordinary route: the guards of the application answer', async () => {
  const url = await open({ path: 'tools' });
  const refused = await post(new URL('tools', url));
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBeNull();
});

test('views of tools are served like the tools, and errors in them are reported at start', async () => {
  const output = { type: 'object', properties: { id: { type: 'string' } } } as const;
  const view = (name: string, options: ToolOptions) => {
    @Injectable()
    class Views {
      @Tool({
        name,
        description: 'Show an order',
        ui: { uri: `ui://${name}`, html: '<!doctype html>' },
        ...options,
      })
      order() {
        return { id: 'a1' };
      }
    }
    return Views;
  };
  const providers = [view('open_order', { output, public: true }), view('own_order', { output })];
  const url = await open({ oauth: OAUTH }, { providers });
  const stranger = await connect(url);
  expect((await stranger.listResources()).resources).toMatchObject([{ uri: 'ui://open_order' }]);
  await expect(stranger.readResource({ uri: 'ui://own_order' })).rejects.toThrow();
  const ada = await connect(url, 'ada:');
  expect((await ada.listResources()).resources).toHaveLength(2);
  expect(await ada.readResource({ uri: 'ui://own_order' })).toMatchObject({
    contents: [{ text: '<!doctype html>' }],
  });
  expect((await ada.callTool({ name: 'own_order' })).structuredContent).toEqual({ id: 'a1' });
  await stranger.close();
  await ada.close();
  await expect(open({}, { providers: [view('bad', {})] })).rejects.toThrow(
    'Views.order: it has a `ui`, but its output does not describe an object',
  );
});

test('errors in the options of the route are reported when the application starts', async () => {
  await expect(open({ oauth: { resource: 'not a URL', issuer: issuer.issuer } })).rejects.toThrow(
    'oauth.resource',
  );
  const inFactory = ToolwrightModule.forRootAsync({ useFactory: () => ({ mcp: {} }) as never });
  await expect(boot({ imports: [inFactory] })).rejects.toThrow('mcp beside useFactory');
});
