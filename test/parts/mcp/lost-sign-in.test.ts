import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { type Answer, defineTool, resumeToolLoop, runToolLoop, ToolRegistry } from 'toolwright';
import { connectMcp, fileTokens, followMcpTools, type McpFollowing, mcpTools } from 'toolwright/mcp';
import { ScriptedProvider } from 'toolwright/testing';
import { agree, CANARY, type OddServers, serveOddly } from './odd-authorization-server.js';

const redirectUrl = 'http://127.0.0.1:33333/callback';

let folder: string;
let server: OddServers;
const open = new Set<McpFollowing>();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-lost-'));
  // The SDK warns about every failed renewal.
  jest.spyOn(console, 'warn').mockImplementation(() => {});
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const following of open) await following.close();
  open.clear();
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** A server at which the user has signed in, and which also has a public tool. */
async function signInAtShop(unauthorised: 'hide' | 'show'): Promise<void> {
  const registry = new ToolRegistry().register(
    defineTool({
      name: 'orders',
      description: 'Lists orders',
      scopes: ['read'],
      execute: (_args, { data }) => `orders of ${String(data.account)}`,
    }),
  );
  server = await serveOddly(registry, unauthorised);
  const own = new ToolRegistry().register(...(await mcpTools(connector(agree))));
  expect((await own.execute('orders', {})).forLLM).toBe('orders of ada');
  registry.register(defineTool({ name: 'ping', description: 'Pings', public: true, execute: () => 'pong' }));
}

const connector = (onSignIn?: typeof agree) =>
  connectMcp({
    url: server.url,
    auth: { redirectUrl, tokens: fileTokens(join(folder, 'tokens.json')), ...(onSignIn && { onSignIn }) },
  });

/** Another process, whose users sign in within their runs. */
async function start() {
  const connect = connector();
  const registry = new ToolRegistry();
  const following = await followMcpTools(registry, connect, { onError: () => {} });
  open.add(following);
  const ping = async () => (await registry.execute('ping', {})).forLLM;
  const run = (...tools: string[]) => {
    const replies = tools.map((name) => ({ content: '', toolCalls: [{ name, arguments: {} }] }));
    const provider = new ScriptedProvider([...replies, { content: 'Done.' }]);
    const config = { provider, model: 'a-model', tools: registry };
    return { config, ended: runToolLoop(config, [{ role: 'user', content: 'What did I order?' }]) };
  };
  return { connect, registry, following, ping, run };
}

/** How a stored sign-in becomes invalid: all tokens are revoked, or the access token expires and its renewal fails. */
const LOSSES: Readonly<Record<string, () => void>> = {
  'that was revoked': () => server.revokeAll(),
  'whose renewal is refused': () => {
    server.expireAll();
    server.behaviour.failsWith = 400;
  },
};

describe.each(Object.entries(LOSSES))('a stored sign-in %s', (_, lose) => {
  test('leaves the public tools available, and the other tools ask the user to sign in again', async () => {
    await signInAtShop('show');
    const before = await start();
    expect(await before.run('orders').ended).toMatchObject({ status: 'completed' });
    lose();
    const after = await start();
    for (const { registry, ping, run } of [before, after]) {
      expect(await ping()).toBe('pong');
      const { status, pending } = await run('orders').ended;
      expect([status, JSON.stringify(pending)]).toEqual([
        'suspended',
        expect.stringContaining('Sign in on this page'),
      ]);
      expect(await ping()).toBe('pong');
      expect(registry.list().slice(0, 2)).toEqual(['orders', 'ping']);
    }
    expect(after.following.status).toMatchObject({ state: 'sign_in', tools: ['orders', 'ping'] });
  });

  test('is offered again beside the public tools, in this process and the next', async () => {
    await signInAtShop('hide');
    lose();
    await start();
    const { connect, registry, following, ping, run: begin } = await start();
    expect(registry.list()).toEqual(['ping', 'sign_in']);
    expect(following.status).toMatchObject({ state: 'sign_in', tools: ['ping'] });
    expect(await ping()).toBe('pong');
    const { config, ended } = begin('sign_in', 'orders');
    const run = await ended;
    expect(run.status).toBe('suspended');
    server.behaviour.failsWith = undefined;
    const [page = ''] = /http\S+authorize\S+(?=")/.exec(JSON.stringify(run.pending)) ?? [];
    expect(await connect.finishSignIn(await agree(new URL(page)))).toBe(true);
    const answers = run.pending?.map(({ id }) => ({ id, value: true }) as Answer) ?? [];
    const end = await resumeToolLoop(config, run.state as never, answers);
    expect(end.toolCalls.map(({ result }) => result.forLLM)).toEqual([
      expect.stringContaining('can be called now: '),
      'orders of ada',
    ]);
    expect(following.status).toMatchObject({ state: 'connected', tools: ['ping', 'orders'] });
    expect(JSON.stringify([run, end])).not.toContain(CANARY);
  });
});
