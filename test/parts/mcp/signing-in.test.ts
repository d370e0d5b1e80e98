import { EventEmitter, once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';
import {
  connectMcp,
  fileTokens,
  followMcpTools,
  type McpAuth,
  type McpTokenStore,
  mcpTools,
  storeTokens,
} from 'toolwright/mcp';
import { PostgresRunStore } from 'toolwright/postgres';
import { SqliteRunStore } from 'toolwright/stores';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { describePostgres } from '../../services/services.js';
import { serve } from '../../setup/loopback.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { agree, CANARY, type OddServers, serveOddly } from './odd-authorization-server.js';

const redirectUrl = 'http://127.0.0.1:33333/callback';

let folder: string;
let path: string;
let servers: OddServers;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-sign-in-'));
  path = join(folder, 'mine', 'tokens.json');
  servers = await serveOddly(shopTools());
});
afterEach(async () => {
  await servers[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function shopTools(): ToolRegistry {
  return new ToolRegistry().register(
    defineTool({
      name: 'orders',
      description: 'Lists orders',
      scopes: ['read'],
      execute: (_args, { data }) => `orders of ${String(data.account)}`,
    }),
    defineTool({
      name: 'order',
      description: 'Orders',
      scopes: ['write'],
      execute: (_args, { data }) => `ordered by ${String(data.account)}`,
    }),
    defineTool({
      name: 'headers',
      description: 'Returns what it received',
      scopes: ['read'],
      execute: (_args, { data }) => JSON.stringify(data.mcp?.headers?.get('authorization')),
    }),
  );
}

interface Shop {
  readonly registry: ToolRegistry;
  call(name: string): Promise<string>;
}

/** A server that lists its tools to everybody, and asks for a sign-in when a protected tool is called. */
function serveOpenly(): Promise<OddServers> {
  return serveOddly(
    shopTools().register(
      defineTool({ name: 'ping', description: 'Pings', public: true, execute: () => 'pong' }),
    ),
  );
}

/** A client in another process, or after a restart. */
async function visit(auth: Partial<McpAuth> = {}, { url } = servers): Promise<Shop> {
  const connect = connectMcp({
    url,
    auth: { redirectUrl, onSignIn: agree, tokens: fileTokens(path), ...auth },
  });
  const registry = new ToolRegistry().register(...(await mcpTools(connect, { prefix: 'shop' })));
  return {
    registry,
    call: async (name) => (await registry.execute(`shop_${name}`, {})).forLLM,
  };
}

test('a client signs in once, and the next client uses the stored tokens', async () => {
  const shop = await visit();
  expect(await shop.call('orders')).toBe('orders of ada');
  expect(await (await visit()).call('orders')).toBe('orders of ada');
  expect(servers.grants).toEqual(['authorization_code']);
});

test('a call that needs more scopes asks for them together with the earlier scopes', async () => {
  await using open = await serveOpenly();
  const shop = await visit({}, open);
  expect(await shop.call('ping')).toBe('pong');
  expect(open.visits).toEqual([]);
  expect(await shop.call('orders')).toBe('orders of ada');
  expect(await shop.call('order')).toBe('ordered by ada');
  expect(open.visits).toEqual(['read', 'read write']);
  expect(await shop.call('orders')).toBe('orders of ada');
  expect(open.visits).toHaveLength(2);
});

test('an expired token is refreshed, and the new token is stored', async () => {
  const shop = await visit();
  await shop.call('orders');
  for (const _time of [1, 2]) {
    servers.expireAll();
    expect(await shop.call('orders')).toBe('orders of ada');
  }
  servers.expireAll();
  expect(await (await visit()).call('orders')).toBe('orders of ada');
  expect(servers.visits).toHaveLength(1);
});

test('clients that refresh the same token at the same time send one request', async () => {
  const shops = [await visit(), await visit(), await visit()];
  for (const shop of shops) await shop.call('orders');
  servers.grants.length = 0;
  servers.behaviour.delayMs = 100;
  servers.expireAll();
  const calls = shops.flatMap((shop) => [shop.call('orders'), shop.call('headers')]);
  expect((await Promise.all(calls)).filter((text) => text === 'orders of ada')).toHaveLength(3);
  expect(servers.grants).toEqual(['refresh_token']);
  servers.expireAll();
  expect(await shops[0]?.call('orders')).toBe('orders of ada');
});

const SECRET = 'a secret of the application, long enough';

/** A token store that several processes share, and the expression that creates it in another process. */
interface SharedTokens {
  readonly tokens: McpTokenStore;
  readonly expression: string;
}

/** Lets three processes call at the same time with an expired token. */
async function expectOneRenewal({ tokens, expression }: SharedTokens): Promise<void> {
  const shop = await visit({ tokens });
  await shop.call('orders');
  servers.grants.length = 0;
  servers.behaviour.delayMs = 1_000;
  servers.expireAll();
  const built = (name: string): string =>
    JSON.stringify(pathToFileURL(builtFile(`dist/src/${name}/index.js`)));
  const program = `
    import { ToolRegistry } from ${JSON.stringify(pathToFileURL(builtFile('dist/src/index.js')))};
    import { connectMcp, fileTokens, mcpTools, storeTokens } from ${built('surfaces/mcp')};
    import { SqliteRunStore } from ${built('durable/stores')};
    import { PostgresRunStore } from ${built('durable/postgres')};
    const [url, redirectUrl] = process.argv.slice(1);
    const connect = connectMcp({ url, auth: { redirectUrl, tokens: ${expression} } });
    const registry = new ToolRegistry().register(...(await mcpTools(connect)));
    console.log((await registry.execute('orders', {})).forLLM);
    process.exit();
  `;
  const args = ['--input-type=module', '--eval', program, servers.url, redirectUrl];
  const processes = Array.from({ length: 3 }, () => new NodeProcess(args, { folder }));
  for (const { exitCode, stdout, stderr } of await Promise.all(processes.map((one) => one.ended())))
    expect([exitCode, stdout, stderr]).toEqual([0, 'orders of ada\n', '']);
  expect(servers.grants).toEqual(['refresh_token']);
  expect(await shop.call('orders')).toBe('orders of ada');
}

test('processes that refresh the same token of a file at the same time send one request, and all continue', () =>
  expectOneRenewal({ tokens: fileTokens(path), expression: `fileTokens(${JSON.stringify(path)})` }));

test('processes that refresh the same token in SQLite at the same time send one request, and all continue', async () => {
  const options = { path: join(folder, 'agent.sqlite') };
  const store = new SqliteRunStore(options);
  const expression = `storeTokens(new SqliteRunStore(${JSON.stringify(options)}), '${SECRET}')`;
  await expectOneRenewal({ tokens: storeTokens(store, SECRET), expression });
  store.close();
});

describePostgres('with PostgreSQL', (postgres) => {
  const schemas = new TestSchemas(postgres);

  test('processes that refresh the same token at the same time send one request, and all continue', async () => {
    const options = { connectionString: postgres.url, schema: schemas.newSchema() };
    const store = new PostgresRunStore(options);
    const expression = `storeTokens(new PostgresRunStore(${JSON.stringify(options)}), '${SECRET}')`;
    await expectOneRenewal({ tokens: storeTokens(store, SECRET), expression });
    await store.close();
  });
});

test('the user signs in again after all tokens were revoked', async () => {
  const warn = jest.spyOn(console, 'warn').mockImplementation(() => {});
  const shop = await visit();
  await shop.call('orders');
  servers.revokeAll();
  servers.behaviour.echoes = true;
  expect(await shop.call('orders')).toBe('orders of ada');
  expect(servers.visits).toHaveLength(2);
  expect(JSON.stringify(warn.mock.calls)).not.toContain(CANARY);
  warn.mockRestore();
});

test('a failing authorization server does not require a new sign-in', async () => {
  const warn = jest.spyOn(console, 'warn').mockImplementation(() => {});
  const shop = await visit();
  await shop.call('orders');
  servers.expireAll();
  servers.behaviour.failsWith = 503;
  expect(await shop.call('orders')).toMatch(
    /answered with status 503 \(.+\/token\): the token could not be renewed$/,
  );
  servers.behaviour.failsWith = undefined;
  expect(await shop.call('orders')).toBe('orders of ada');
  expect(servers.visits).toHaveLength(1);
  warn.mockRestore();
});

test('a failing authorization server is reported with its address, and not as the MCP server', async () => {
  const gone = await serve(() => {});
  await gone[Symbol.asyncDispose]();
  await using busy = await serve((_request, response) => response.writeHead(503).end());
  await using shop = await serve(({ url = '', headers: { host } }, response) => {
    const [, name = ''] = /^\/\.well-known\/oauth-protected-resource\/(.+)$/.exec(url) ?? [];
    if (name === '') return response.writeHead(401).end();
    const authorization_servers = [name === 'gone' ? gone.url : busy.url];
    response.end(JSON.stringify({ resource: `http://${host}/${name}`, authorization_servers }));
  });
  const errorOf = (name: string) =>
    visit({}, { ...servers, url: `${shop.url}/${name}` }).catch((error: Error) => error.message);
  const metadata = '/.well-known/oauth-authorization-server';
  expect(await errorOf('gone')).toContain(
    `The authorization server of ${shop.url}/gone cannot be reached (${gone.url}${metadata}): `,
  );
  expect(await errorOf('busy')).toContain(
    `The authorization server of ${shop.url}/busy answered with status 503 (${busy.url}${metadata}): `,
  );
});

test('a token of another account is refused, and the user signs in again', async () => {
  const shop = await visit();
  await shop.call('orders');
  servers.expireAll();
  servers.behaviour.account = 'mallory';
  expect(await shop.call('orders')).toContain('a different account');
  expect(await shop.call('orders')).toContain('a different account');
  servers.behaviour.account = 'ada';
  expect(await shop.call('orders')).toBe('orders of ada');
});

test('users of one server have separate tokens', async () => {
  const shop = await visit({ account: 'ada' });
  expect(await shop.call('orders')).toBe('orders of ada');
  servers.behaviour.account = 'bob';
  expect(await (await visit({ account: 'bob' })).call('orders')).toBe('orders of bob');
  expect(await shop.call('orders')).toBe('orders of ada');
});

test('concurrent calls that need a sign-in open one page', async () => {
  await using open = await serveOpenly();
  const shop = await visit({}, open);
  const texts = await Promise.all([shop.call('order'), shop.call('order'), shop.call('order')]);
  expect(texts).toEqual(['ordered by ada', 'ordered by ada', 'ordered by ada']);
  expect(open.visits).toHaveLength(1);
});

test('a sign-in fails after ten minutes without the user', async () => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const limits = jest
    .spyOn(AbortSignal, 'timeout')
    .mockImplementation((ms) => timeout(ms === 600_000 ? 50 : ms));
  const never = () => new Promise<never>(() => {});
  const untilAborted = async (_page: URL, signal: AbortSignal) => {
    await once(new EventEmitter(), 'request', { signal });
    return '';
  };
  for (const onSignIn of [never, untilAborted])
    await expect(visit({ onSignIn })).rejects.toThrow(
      `The user did not sign in at ${servers.url} within 10 minutes.`,
    );
  limits.mockRestore();
  expect(await (await visit()).call('orders')).toBe('orders of ada');
});

test('an address that belongs to no sign-in or was used before is refused', async () => {
  const pages: string[] = [];
  const connect = connectMcp({
    url: servers.url,
    auth: {
      redirectUrl,
      tokens: fileTokens(path),
      async onSignIn(page) {
        pages.push(await agree(page));
        return `${redirectUrl}?code=stolen&state=unknown`;
      },
    },
  });
  await expect(mcpTools(connect)).rejects.toThrow('does not belong to the sign-in');
  const [page = ''] = pages;
  expect(await connect.finishSignIn(page)).toBe(true);
  expect(await connect.finishSignIn(page)).toBe(false);
  expect(await connect.finishSignIn('/signed-in?code=1&state=unknown')).toBe(false);
  expect(await connect.finishSignIn('')).toBe(false);
  expect(await mcpTools(connect)).toHaveLength(3);
});

test('without onSignIn, the error names the server and the option to set', async () => {
  const connect = connectMcp({ url: servers.url, auth: { redirectUrl } });
  await expect(mcpTools(connect)).rejects.toThrow(
    `The MCP server ${servers.url} needs a sign-in: set \`auth.onSignIn\``,
  );
});

test('the sign-in tool frees its name after the sign-in and on close', async () => {
  const auth = { redirectUrl, tokens: fileTokens(path) };
  const registry = new ToolRegistry();
  const follow = ({ url }: OddServers) => followMcpTools(registry, connectMcp({ url, auth }));
  const first = await follow(servers);
  expect(registry.list()).toEqual(['sign_in']);
  await first.close();
  expect(registry.list()).toEqual([]);

  await visit();
  const second = await follow(servers);
  expect(second.status).toMatchObject({ state: 'connected' });
  await using other = await serveOddly(
    new ToolRegistry().register(
      defineTool({ name: 'list', description: 'Lists', scopes: ['read'], execute: () => 'l' }),
    ),
  );
  const third = await follow(other);
  expect(registry.list()).toEqual(['orders', 'order', 'headers', 'sign_in']);
  expect(third.status).toMatchObject({ state: 'sign_in' });
  await second.close();
  await third.close();
  expect(registry.list()).toEqual(['orders', 'order', 'headers']);
});

test('secrets are only in the token file, which only its user can read', async () => {
  const said: unknown[] = [];
  const logger = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((level) => [level, (...given: unknown[]) => said.push(given)]),
  );
  const spies = (['log', 'warn', 'error', 'info', 'debug'] as const).map((level) =>
    jest.spyOn(console, level).mockImplementation((...given) => said.push(given)),
  );
  const connect = connectMcp({
    url: servers.url,
    auth: { redirectUrl, onSignIn: agree, tokens: fileTokens(path) },
  });
  const registry = new ToolRegistry({ logger: logger as never });
  const following = await followMcpTools(registry, connect, { onError: (error) => said.push(error) });
  const call = async (name: string): Promise<void> => {
    const result = await registry.execute(name, {});
    said.push(result, result.error, (result.error as Error | undefined)?.cause);
  };
  for (const name of ['orders', 'headers', 'order']) await call(name);
  servers.behaviour.echoes = true;
  servers.revokeAll();
  await call('orders');
  servers.revokeAll();
  servers.behaviour.failsWith = 400;
  await call('orders');
  await following.close();
  for (const spy of spies) spy.mockRestore();
  const shown = said.map((one) => (one instanceof Error ? `${one.stack} ${one.cause}` : JSON.stringify(one)));
  expect(shown.join('\n')).toContain('[secret]');
  expect(shown.join('\n')).not.toContain(CANARY);
  expect(readFileSync(path, 'utf8')).toContain(CANARY);
  if (process.platform !== 'win32') expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a file that contains no tokens is reported, and not overwritten', async () => {
  const file = join(folder, 'notes.txt');
  writeFileSync(file, 'notes');
  await expect(visit({ tokens: fileTokens(file) })).rejects.toThrow('is not a file of tokens');
  expect(readFileSync(file, 'utf8')).toBe('notes');
});
