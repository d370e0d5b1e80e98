import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  defineTool,
  resumeToolLoop,
  runToolLoop,
  type StoreWithResults,
  ToolRegistry,
} from 'toolwright';
import { type Agent, createAgent } from 'toolwright/agent';
import { connectMcp, createMcpServer, followMcpTools, mcpTools, storeTokens } from 'toolwright/mcp';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedReply } from 'toolwright/testing';
import { builtFile } from '../../processes/built-file.js';
import { describePostgres } from '../../services/services.js';
import { serve } from '../../setup/loopback.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { agree, CANARY, type OddServers, serveOddly } from './odd-authorization-server.js';

const redirectUrl = 'https://app.example.com/signed-in';

function calls(...names: string[]): ScriptedReply[] {
  return [...names.map((name) => ({ toolCalls: [{ name, arguments: {} }] })), { content: 'Done.' }];
}

describe('a sign-in that suspends the run', () => {
  let folder: string;
  let servers: OddServers;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolwright-asking-'));
    servers = await serveOddly(
      new ToolRegistry().register(
        defineTool({
          name: 'orders',
          description: 'Lists orders',
          scopes: ['read'],
          annotations: { readOnly: true },
          execute: (_args, { data }) =>
            `orders of ${String(data.account)}, ${data.mcp?.headers?.get('authorization')}`,
        }),
      ),
    );
  });
  afterEach(async () => {
    await servers[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  /** One process of an application. */
  function start(replies: readonly ScriptedReply[]): Promise<Agent> {
    return createAgent({
      provider: new ScriptedProvider(replies),
      model: 'offline',
      folder,
      store: { sqlite: { path: join(folder, 'agent.sqlite') } },
      stateSecret: 'a secret of the application that has at least thirty-two characters',
      mcp: { shop: { url: servers.url, auth: { redirectUrl } } },
    });
  }

  test('the user signs in through a link, another process completes it, and no token is stored in clear', async () => {
    await using agent = await start(calls('shop_sign_in', 'shop_orders'));
    expect(agent.registry.list()).toEqual(['shop_sign_in']);
    const run = await agent.run('What did I order?');
    expect(run.status).toBe('suspended');
    const [question] = run.pending ?? [];
    const page = /http\S+/.exec(JSON.parse(JSON.stringify(question)).message ?? '')?.[0] ?? '';
    await using other = await start([]);
    expect(await other.finishSignIn(`${redirectUrl}?state=unknown&code=1`)).toBe(false);
    expect(await other.finishSignIn(await agree(new URL(page)))).toBe(true);
    const resumed = await agent.resume(run.state, [{ id: question?.id ?? '', value: true } as Answer]);
    expect([resumed.status, resumed.content]).toEqual(['completed', 'Done.']);
    expect(JSON.stringify(resumed.messages)).toContain('orders of ada, Bearer [secret]');
    expect(JSON.stringify([run, resumed])).not.toContain(CANARY);
    expect(agent.registry.list()).toEqual(['shop_orders']);
    for (const file of readdirSync(folder))
      expect(readFileSync(join(folder, file), 'latin1')).not.toContain(CANARY);
    await using third = await start([]);
    expect(third.registry.list()).toEqual(['shop_orders']);
  });

  test('a user who answers without signing in is asked again, and a user who refuses is not', async () => {
    await using agent = await start(calls('shop_sign_in'));
    const run = await agent.run('What did I order?');
    const answer = (value: boolean, { pending }: Pick<typeof run, 'pending'>) =>
      (pending ?? []).map(({ id }) => ({ id, value }) as Answer);
    const again = await agent.resume(run.state, answer(true, run));
    expect([again.status, again.pending?.length]).toEqual(['suspended', 1]);
    const refused = await agent.resume(again.state, answer(false, again));
    expect(refused.status).toBe('completed');
    expect(JSON.stringify(refused.messages)).toContain('The user did not sign in.');
  });
});

async function expectCompareAndSet(store: StoreWithResults): Promise<void> {
  const tokens = storeTokens(store, '1'.repeat(32));
  expect(await tokens.load('a')).toBeUndefined();
  expect(await tokens.save('a', 'first', 'other')).toBe(false);
  expect(await tokens.save('a', 'first', undefined)).toBe(true);
  expect(await tokens.save('a', 'again', undefined)).toBe(false);
  const both = await Promise.all([tokens.save('a', 'left', 'first'), tokens.save('a', 'right', 'first')]);
  expect(both.filter(Boolean)).toHaveLength(1);
  expect(['left', 'right']).toContain(await tokens.load('a'));
  expect(await tokens.load('b')).toBeUndefined();
  const others = storeTokens(store, '2'.repeat(32));
  expect(await others.load('a')).toBeUndefined();
  expect(await others.save('a', 'mine', undefined)).toBe(true);
  expect(await others.load('a')).toBe('mine');
}

test.each([
  ['memory', () => new MemoryRunStore()],
  ['SQLite', () => new SqliteRunStore({ path: ':memory:' })],
])(
  'tokens in a run store (%s) are replaced only if unchanged, and can be read only with their secret',
  (_name, open) => expectCompareAndSet(open()),
);

describePostgres('with PostgreSQL', (postgres) => {
  const schemas = new TestSchemas(postgres);

  test('tokens in a run store are replaced only if unchanged, and can be read only with their secret', async () => {
    const store = new PostgresRunStore({ connectionString: postgres.url, schema: schemas.newSchema() });
    await expectCompareAndSet(store);
    await store.close();
  });
});

describe('questions of a server', () => {
  const shop = new ToolRegistry().register(
    defineTool({
      name: 'order',
      description: 'Orders',
      async execute(_args, context) {
        const size = await context.ask({
          message: 'Which size?',
          schema: { type: 'object', properties: { size: { type: 'integer' } }, required: ['size'] },
        });
        return `ordered size ${JSON.stringify(size)}`;
      },
    }),
  );

  /** A server before 2026-07-28 does not implement `server/discover`, with which newer clients begin. */
  function listenerOf(era: string): { readonly listener: RequestListener; close(): Promise<void> } {
    const mcp = createMcpServer(shop);
    const listener: RequestListener = (request, response) => {
      if (era === '2026-07-28' || request.headers['mcp-method'] !== 'server/discover')
        return void mcp.node(request, response);
      const error = { code: -32601, message: 'Method not found' };
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
    };
    return { listener, close: () => mcp.close() };
  }

  test.each(['2025-11-25', '2026-07-28'])('are answered by the user of the run, %s', async (era) => {
    const { listener, close } = listenerOf(era);
    await using http = await serve(listener);
    const tools = new ToolRegistry().register(...(await mcpTools(connectMcp({ url: `${http.url}/mcp` }))));
    const config = { provider: new ScriptedProvider(calls('order')), model: 'offline', tools };
    const run = await runToolLoop(config, [{ role: 'user', content: 'Order shoes' }]);
    expect(run.status).toBe('suspended');
    expect(run.pending).toMatchObject([{ message: 'Which size?' }]);
    const [{ id = '' } = {}] = run.pending ?? [];
    const resumed = await resumeToolLoop(config, run.state, [{ id, value: { size: 42 } } as Answer]);
    expect(resumed.status).toBe('completed');
    expect(JSON.stringify(resumed.messages)).toContain('ordered size');
    expect(JSON.stringify(resumed.messages)).toContain('42');
    await close();
  });
});

describe('questions of a stdio server', () => {
  const SERVER = `
    import { defineTool, ToolRegistry } from ${JSON.stringify(builtFile('dist/src/index.js'))};
    const both = Promise.withResolvers();
    let open = 0;
    const parameters = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    export const tools = new ToolRegistry().register(
      defineTool({ name: 'refund', description: 'Refunds', approval: true, execute: () => 'Refunded' }),
      defineTool({ name: 'order', description: 'Orders', parameters, async execute({ name }, context) {
        open += 1;
        if (open === 2) both.resolve();
        await both.promise;
        const size = await context.ask({ message: 'Which size, ' + name + '?', schema: { type: 'integer' } });
        const colour = await context.ask({ message: 'Which colour, ' + name + '?' });
        return [name, size, colour].join();
      } }),
    );
  `;
  let folder: string;
  let tools: ToolRegistry;
  let following: { close(): Promise<void> };
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolwright-asking-'));
    const file = join(folder, 'tools.mjs');
    writeFileSync(file, SERVER);
    tools = new ToolRegistry();
    const args = [builtFile('dist/src/dev/cli/main.js'), 'mcp', file];
    following = await followMcpTools(tools, connectMcp({ command: process.execPath, args }));
  });
  afterEach(async () => {
    await following.close();
    rmSync(folder, { recursive: true });
  });

  test('suspend the run, as its approvals do', async () => {
    const config = { provider: new ScriptedProvider(calls('refund')), model: 'offline', tools };
    const run = await runToolLoop(config, [{ role: 'user', content: 'Refund it' }]);
    expect(run.status).toBe('suspended');
    expect(run.pending).toMatchObject([{ message: expect.stringContaining("Run 'refund'") }]);
    const [{ id = '' } = {}] = run.pending ?? [];
    const resumed = await resumeToolLoop(config, run.state, [{ id, value: {} } as Answer]);
    expect(resumed.toolCalls.at(-1)?.result.forLLM).toBe('Refunded');
  });

  test('reach the user of their call while calls of other users are open', async () => {
    async function order(name: string, answers: readonly unknown[]): Promise<string> {
      const replies = [{ toolCalls: [{ name: 'order', arguments: { name } }] }, { content: 'Done.' }];
      const config = { provider: new ScriptedProvider(replies), model: 'offline', tools };
      let run = await runToolLoop(config, [{ role: 'user', content: 'Order shoes' }]);
      for (const [index, answer] of answers.entries()) {
        const message = `Which ${index === 0 ? 'size' : 'colour'}, ${name}?`;
        expect(run.pending).toMatchObject([{ message }]);
        const given = { id: run.pending?.[0]?.id ?? '', value: { answer } } as Answer;
        run = await resumeToolLoop(config, run.state, [given]);
      }
      return run.toolCalls.at(-1)?.result.forLLM ?? '';
    }
    const ordered = await Promise.all([order('Ada', [38, 'red']), order('Bob', [46, 'blue'])]);
    expect(ordered).toEqual(['Ada,38,red', 'Bob,46,blue']);
  });
});
