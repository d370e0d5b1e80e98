import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Answer, defineTool, type PendingCall, ToolRegistry } from 'toolwright';
import { type Agent, createAgent } from 'toolwright/agent';
import { ScriptedProvider, type ScriptedReply } from 'toolwright/testing';
import { agree, CANARY, type OddServers, serveOddly } from '../mcp/odd-authorization-server.js';

const redirectUrl = 'https://app.example.com/signed-in';

let folder: string;
let shop: OddServers;
let bank: OddServers;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-sign-ins-'));
  [shop, bank] = await Promise.all([serveOddly(toolsOf('shop')), serveOddly(toolsOf('bank'))]);
});
afterEach(async () => {
  await Promise.all([shop, bank].map((servers) => servers[Symbol.asyncDispose]()));
  rmSync(folder, { recursive: true });
});

/** Both servers have a tool of the same name. */
function toolsOf(name: string): ToolRegistry {
  return new ToolRegistry().register(
    defineTool({
      name: 'list',
      description: `Lists what the ${name} has`,
      scopes: ['read'],
      annotations: { readOnly: true },
      execute: (_args, { data }) => `${name} of ${String(data.account)}`,
    }),
  );
}

function start(
  replies: readonly ScriptedReply[],
  servers: Record<string, OddServers> = { shop, bank },
): Promise<Agent> {
  const auth = { redirectUrl };
  const mcp = Object.entries(servers).map(([name, { url }]) => [name, { url, auth }]);
  return createAgent({
    provider: new ScriptedProvider(replies),
    model: 'offline',
    folder,
    permissions: { mode: 'auto' },
    store: { sqlite: { path: join(folder, 'agent.sqlite') } },
    stateSecret: 'a secret of the application that has at least thirty-two characters',
    mcp: Object.fromEntries(mcp),
  });
}

function calling(...names: string[]): ScriptedReply {
  return { toolCalls: names.map((name) => ({ name, arguments: {} })) };
}

/** The sign-in page of a server's question. */
function pageOf(pending: readonly PendingCall[] | undefined, { issuer }: OddServers): URL {
  const pages = /http\S+authorize\S+(?=")/g;
  const found = [...JSON.stringify(pending).matchAll(pages)].find(([page]) => page.startsWith(issuer));
  return new URL(found?.[0] ?? '');
}

function answerAll(pending: readonly PendingCall[] | undefined, signedIn: OddServers): Answer[] {
  return (pending ?? []).map((call) => {
    const value = JSON.stringify(call).includes(signedIn.issuer);
    return { id: call.id, value } as Answer;
  });
}

test('with two servers in one run, the user signs in to one and refuses the other', async () => {
  await using agent = await start([
    calling('shop_sign_in', 'bank_sign_in'),
    calling('shop_list', 'bank_sign_in'),
    { content: 'Done.' },
  ]);
  expect(agent.registry.list()).toEqual(['shop_sign_in', 'bank_sign_in']);
  const run = await agent.run('What do I have?');
  expect(run.pending).toHaveLength(2);

  shop.behaviour.account = 'ada';
  bank.behaviour.account = 'eve';
  expect(await agent.finishSignIn(await agree(pageOf(run.pending, shop)))).toBe(true);
  const second = await agent.resume(run.state, answerAll(run.pending, shop));
  expect(second.pending).toHaveLength(1);
  const end = await agent.resume(second.state, answerAll(second.pending, shop));
  expect([end.status, end.content]).toEqual(['completed', 'Done.']);
  const results = end.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
  expect(results).toEqual([
    expect.stringContaining('shop_list'),
    expect.stringContaining('The user did not sign in.'),
    'shop of ada',
    expect.stringContaining('The user did not sign in.'),
  ]);
  expect(agent.registry.list().sort()).toEqual(['bank_sign_in', 'shop_list']);
  expect(agent.mcp).toMatchObject({
    shop: { state: 'connected', tools: ['shop_list'] },
    bank: { state: 'sign_in', tools: [] },
  });
  expect(shop.issued.length).toBeGreaterThan(2);
  for (const secret of shop.issued) expect(bank.received.join()).not.toContain(secret);
  for (const secret of bank.issued) expect(shop.received.join()).not.toContain(secret);
  expect(JSON.stringify([run, second, end])).not.toContain(CANARY);
  for (const file of readdirSync(folder))
    expect(readFileSync(join(folder, file), 'latin1')).not.toContain(CANARY);
});

test('the authorization code of one server is never sent to another', async () => {
  await using agent = await start([calling('shop_sign_in', 'bank_sign_in')]);
  const { pending } = await agent.run('What do I have?');
  const ofShop = new URL(await agree(pageOf(pending, shop)));
  const ofBank = new URL(await agree(pageOf(pending, bank)));
  const mixed = new URL(ofShop);
  mixed.searchParams.set('state', ofBank.searchParams.get('state') ?? '');
  await expect(agent.finishSignIn(mixed)).rejects.toThrow('Issuer mismatch');
  expect(bank.received.join()).not.toContain(ofShop.searchParams.get('code'));
  expect(await agent.finishSignIn(ofShop)).toBe(true);
});

test('a call that needed a sign-in can then ask its own questions, one after the other', async () => {
  await shop[Symbol.asyncDispose]();
  shop = await serveOddly(
    new ToolRegistry().register(
      defineTool({
        name: 'book',
        description: 'Books a table',
        scopes: ['read'],
        annotations: { readOnly: true },
        execute: async (_args, context) => {
          const name = await context.ask({ message: 'For whom?' });
          const day = await context.ask({ message: 'When?' });
          return `${name}, ${day}`;
        },
      }),
    ),
  );
  await using agent = await start([
    calling('shop_sign_in'),
    { content: 'Signed in.' },
    calling('shop_book'),
    { content: 'Booked.' },
  ]);
  const before = await agent.run('Sign in');
  await agent.finishSignIn(await agree(pageOf(before.pending, shop)));
  await agent.resume(before.state, answerAll(before.pending, shop));
  shop.revokeAll();

  let run = await agent.run('Book a table');
  await agent.finishSignIn(await agree(pageOf(run.pending, shop)));
  run = await agent.resume(run.state, answerAll(run.pending, shop));
  for (const [message, answer] of [
    ['For whom?', 'Ada'],
    ['When?', 'Friday'],
  ]) {
    expect(run.pending).toMatchObject([{ message }]);
    const value = { answer };
    run = await agent.resume(run.state, [{ id: run.pending?.[0]?.id ?? '', value } as Answer]);
  }
  expect([run.status, run.toolCalls[0]?.result.forLLM]).toEqual(['completed', 'Ada, Friday']);
});

describe('a run that waits for a sign-in can be resumed', () => {
  const [signIn, list, done] = [calling('shop_sign_in'), calling('shop_list'), { content: 'Done.' }];

  test('in a process that started after the sign-in and already has the tools', async () => {
    await using first = await start([signIn]);
    const { state, pending } = await first.run('What do I have?');
    expect(await first.finishSignIn(await agree(pageOf(pending, shop)))).toBe(true);

    await using second = await start([list, done]);
    expect(second.registry.list()).toEqual(['shop_list', 'bank_sign_in']);
    const end = await second.resume(state, answerAll(pending, shop));
    expect([end.status, end.content]).toEqual(['completed', 'Done.']);
    expect(end.toolCalls.map(({ result }) => result.forLLM)).toEqual([
      expect.stringContaining('can be called now: shop_list'),
      'shop of ada',
    ]);
  });

  test('after another run has loaded the tools', async () => {
    await using agent = await start([signIn, signIn, list, done, list, done]);
    const runs = [await agent.run('What do I have?'), await agent.run('And now?')];
    expect(await agent.finishSignIn(await agree(pageOf(runs[0]?.pending, shop)))).toBe(true);
    for (const { state, pending } of runs) {
      const end = await agent.resume(state, answerAll(pending, shop));
      expect(end.toolCalls.at(-1)?.result.forLLM).toBe('shop of ada');
    }
  });

  test('in a process that completes the sign-in itself and has not loaded the tools before', async () => {
    await using first = await start([signIn, done, list]);
    const before = await first.run('Sign in');
    await first.finishSignIn(await agree(pageOf(before.pending, shop)));
    await first.resume(before.state, answerAll(before.pending, shop));
    shop.revokeAll();
    const { state, pending } = await first.run('What do I have?');

    await using second = await start([done]);
    expect(second.registry.list()).toEqual(['shop_sign_in', 'bank_sign_in']);
    expect(await second.finishSignIn(await agree(pageOf(pending, shop)))).toBe(true);
    expect(second.registry.list()).toEqual(['bank_sign_in', 'shop_list']);
    const end = await second.resume(state, [{ id: pending?.[0]?.id ?? '', approved: true }]);
    expect(end.toolCalls.at(-1)?.result.forLLM).toBe('shop of ada');
  });

  test('without getting tools of a server that the run did not have', async () => {
    await using first = await start([signIn], { shop });
    const { state, pending } = await first.run('What do I have?');
    await first.finishSignIn(await agree(pageOf(pending, shop)));
    await using other = await start([calling('bank_sign_in')]);
    const ofBank = await other.run('Sign in at the bank');
    await other.finishSignIn(await agree(pageOf(ofBank.pending, bank)));

    await using second = await start([calling('bank_list'), done]);
    expect(second.registry.list()).toEqual(['shop_list', 'bank_list']);
    const end = await second.resume(state, answerAll(pending, shop));
    expect(end.toolCalls.at(-1)?.result.forLLM).toBe('tool not found: bank_list');
  });
});
