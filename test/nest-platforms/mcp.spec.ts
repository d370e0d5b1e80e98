import { expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { All, Controller, Inject, type OnModuleDestroy, Req, Res } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ToolRegistry } from 'toolwright';
import { createMcpServer, type McpToolServer } from 'toolwright/mcp';
import { ToolwrightService } from 'toolwright/nestjs';
import { Caller, type CallerRequest, CallerTools, UserGuard } from './callers.js';
import { listen } from './listen.js';

type AuthenticatedRequest = FastifyRequest & CallerRequest;

/** The same tools at two paths: with the handler for `node:http` and with the Fetch handler. */
@Controller()
class McpController implements OnModuleDestroy {
  readonly #server: McpToolServer;

  constructor(
    @Inject(ToolRegistry) tools: ToolRegistry,
    @Inject(ToolwrightService) toolwright: ToolwrightService,
  ) {
    this.#server = createMcpServer(tools, {
      scope: ({ authInfo }) => toolwright.scopeOf({ user: authInfo?.extra?.user }),
    });
  }

  @All('node')
  async node(@Req() request: AuthenticatedRequest, @Res() reply: FastifyReply) {
    reply.hijack();
    await this.#server.node(Object.assign(request.raw, { auth: authOf(request) }), reply.raw, request.body);
  }

  @All('fetch')
  async fetch(@Req() request: AuthenticatedRequest, @Res() reply: FastifyReply) {
    const { method, url, host, body } = request;
    const headers = new Headers(request.headers as Record<string, string>);
    const web = new Request(`http://${host}${url}`, { method, headers });
    const answer = await this.#server.fetch(web, { authInfo: authOf(request), parsedBody: body });
    return reply.send(answer);
  }

  async onModuleDestroy(): Promise<void> {
    await this.#server.close();
  }
}

function authOf({ user = '' }: AuthenticatedRequest) {
  return { token: '', clientId: user, scopes: [], extra: { user } };
}

for (const path of ['node', 'fetch']) {
  test(`\`mcp.${path}\` under Fastify calls tools for the user of each MCP client`, async () => {
    const { url } = await listen({
      controllers: [McpController],
      providers: [Caller, CallerTools, { provide: APP_GUARD, useClass: UserGuard }],
    });
    const connect = async (authorization: string): Promise<Client> => {
      const client = new Client({ name: 'test', version: '1' });
      const requestInit = { headers: { authorization } };
      await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/${path}`), { requestInit }));
      return client;
    };
    const [ada, bob] = await Promise.all([connect('ada'), connect('bob')]);
    const call = async (client: Client, name: string) =>
      JSON.stringify((await client.callTool({ name, arguments: {} })).content);
    expect((await ada.listTools()).tools.map(({ name }) => name)).toEqual(['who', 'secret', 'wait']);
    const answers = await Promise.all([ada, bob, ada, bob].map((client) => call(client, 'who')));
    expect(answers.map((answer) => /ada|bob/.exec(answer)?.[0])).toEqual(['ada', 'bob', 'ada', 'bob']);
    expect(await call(ada, 'secret')).toContain('the secret');
    expect(await call(bob, 'secret')).toContain('Forbidden resource');
    await Promise.all([ada.close(), bob.close()]);
  });
}

test('forRoot({ mcp }) adds a route under Fastify that requires sign-in and describes it', async () => {
  const oauth = { resource: 'https://api.example.org/mcp', issuer: 'https://auth.example.org' };
  const { url } = await listen({
    options: { mcp: { oauth } } as never,
    providers: [Caller, CallerTools, { provide: APP_GUARD, useClass: UserGuard }],
  });
  const unauthorized = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  expect(unauthorized.status).toBe(401);
  expect(unauthorized.headers.get('www-authenticate')).toContain('resource_metadata=');
  const document = await fetch(`${url}/.well-known/oauth-protected-resource/mcp`);
  expect(await document.json()).toMatchObject({ resource: oauth.resource });
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { authorization: 'ada' } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  expect(JSON.stringify((await client.callTool({ name: 'who', arguments: {} })).content)).toContain('ada');
  await client.close();
});
