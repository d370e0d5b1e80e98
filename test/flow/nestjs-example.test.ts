import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { JsonObject, LLMProvider } from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';
import { ScriptedProvider } from 'toolwright/testing';
import { AppModule } from '../../examples/nestjs/app-module.js';
import { DATABASE } from '../../examples/nestjs/database/open-database.js';
import { disableTimeouts } from '../setup/loopback.js';

const CUSTOMER = 'token-one';
const OTHER = 'token-two';
const CLERK = 'token-clerk';

/** The example's shop application, listening. */
interface Shop {
  readonly app: INestApplication;
  readonly url: string;
}

const open = new Set<INestApplication>();

async function openShop(provider: LLMProvider, dataFolder?: string): Promise<Shop> {
  const module = AppModule.with({ provider, model: 'm', ...(dataFolder ? { dataFolder } : {}) });
  const app = await NestFactory.create(module, { logger: false, abortOnError: false });
  open.add(app);
  disableTimeouts(app.getHttpServer());
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  return { app, url: `http://127.0.0.1:${port}` };
}

async function close(app: INestApplication): Promise<void> {
  open.delete(app);
  await app.close();
}

afterEach(async () => {
  await Promise.all([...open].map(close));
});

function post(url: string, token: string | undefined, body: object): Promise<Response> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const headers = { 'content-type': 'application/json', ...authorization };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

interface Sent {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the example sends
  readonly data: any;
}

async function chat(shop: Shop, token: string, body: object): Promise<readonly Sent[]> {
  const response = await post(`${shop.url}/chat`, token, body);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const blocks = (await response.text()).trim().split('\n\n');
  return blocks.map((block) => {
    const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
    return { event, data: JSON.parse(data) };
  });
}

const call = (id: string, name: string, args: JsonObject) => ({
  content: '',
  toolCalls: [{ id, name, arguments: args }],
});

test('a chat streams its calls and its answer with the data of its user', async () => {
  const shop = await openShop(
    new ScriptedProvider([
      call('a', 'list_orders', {}),
      { content: 'Two orders.' },
      call('a', 'list_orders', {}),
      { content: 'One order.' },
    ]),
  );
  const mine = await chat(shop, CUSTOMER, { text: 'my orders' });
  const theirs = await chat(shop, OTHER, { text: 'my orders' });
  expect(mine.map(({ event }) => event)).toEqual(['call-end', 'text-delta', 'text-delta', 'done']);
  expect(JSON.parse(mine[0]?.data.text)).toMatchObject([
    { item: 'cups', userId: 'u1' },
    { item: 'tea', userId: 'u1' },
  ]);
  expect(JSON.parse(theirs[0]?.data.text)).toMatchObject([{ item: 'coffee', userId: 'u2' }]);
  expect(mine.at(-1)?.data).toMatchObject({ status: 'completed', content: 'Two orders.', pending: [] });
});

test('one guard protects both the routes and the tools', async () => {
  const shop = await openShop(
    new ScriptedProvider([
      call('a', 'report_sales', {}),
      { content: 'Not for you.' },
      call('a', 'report_sales', {}),
      { content: 'Here it is.' },
    ]),
  );
  expect((await post(`${shop.url}/chat`, undefined, { text: 'hi' })).status).toBe(401);
  const customer = await chat(shop, CUSTOMER, { text: 'report' });
  expect(customer[0]?.data).toEqual({
    tool: 'report_sales',
    isError: true,
    text: "The tool 'report_sales' was refused: Forbidden resource",
  });
  const clerk = await chat(shop, CLERK, { text: 'report' });
  expect(JSON.parse(clerk[0]?.data.text)).toContainEqual({ item: 'tea', sold: 3 });
  const headers = { authorization: `Bearer ${CLERK}` };
  const measured = await (await fetch(`${shop.url}/measurements`, { headers })).json();
  expect(measured).toMatchObject({ 'tool report_sales': { count: 1 } });
});

test('after a restart, the owner of a conversation can approve its pending call over HTTP', async () => {
  const dataFolder = mkdtempSync(join(tmpdir(), 'nestjs-example-'));
  try {
    const first = await openShop(
      new ScriptedProvider([call('a', 'place_order', { item: 'tea', quantity: 50 })]),
      dataFolder,
    );
    const events = await chat(first, CUSTOMER, { text: 'fifty packs of tea' });
    const { conversationId, status, pending } = events.at(-1)?.data ?? {};
    expect(status).toBe('suspended');
    expect(pending).toMatchObject([{ kind: 'approval', tool: 'place_order', arguments: { quantity: 50 } }]);
    const waiting = await post(`${first.url}/chat`, CUSTOMER, { text: 'and?', conversationId });
    expect(waiting.status).toBe(409);
    await close(first.app);

    const second = await openShop(
      new ScriptedProvider([
        { content: 'Ordered.' },
        call('b', 'list_orders', { limit: 1 }),
        { content: 'Tea.' },
      ]),
      dataFolder,
    );
    const answersUrl = `${second.url}/chat/${conversationId}/answers`;
    const answers = [{ id: pending[0].id, approved: true }];
    expect((await post(answersUrl, OTHER, { answers })).status).toBe(403);
    expect((await post(answersUrl, CUSTOMER, { answers: [{ id: 'x', approved: true }] })).status).toBe(400);
    expect((await post(answersUrl, CUSTOMER, { answers: ['yes'] })).status).toBe(400);
    const answered = await post(answersUrl, CUSTOMER, { answers });
    expect(await answered.json()).toMatchObject({ status: 'completed', content: 'Ordered.' });
    expect((await post(answersUrl, CUSTOMER, { answers })).status).toBe(409);
    const next = await chat(second, CUSTOMER, { text: 'what did I order?', conversationId });
    expect(JSON.parse(next[0]?.data.text)).toMatchObject([{ item: 'tea', quantity: 50, userId: 'u1' }]);
  } finally {
    rmSync(dataFolder, { recursive: true, force: true });
  }
});

test('a clerk approves a customer’s call, and the run continues as the customer', async () => {
  const shop = await openShop(
    new ScriptedProvider([
      call('a', 'place_order', { item: 'tea', quantity: 50 }),
      {
        content: '',
        toolCalls: [
          { id: 'b', name: 'list_orders', arguments: { limit: 1 } },
          { id: 'c', name: 'report_sales', arguments: {} },
        ],
      },
      { content: 'Ordered.' },
      call('d', 'list_orders', { limit: 1 }),
      { content: 'Tea.' },
    ]),
  );
  const events = await chat(shop, CUSTOMER, { text: 'fifty packs of tea' });
  const { conversationId, pending } = events.at(-1)?.data ?? {};
  const answersUrl = `${shop.url}/chat/${conversationId}/answers`;
  const answers = [{ id: pending[0].id, approved: true }];
  expect((await post(answersUrl, undefined, { answers })).status).toBe(401);
  const stranger = await post(answersUrl, OTHER, { answers });
  expect([stranger.status, await stranger.json()]).toMatchObject([
    403,
    { message: expect.stringContaining('another owner') },
  ]);
  const answered = await post(answersUrl, CLERK, { answers });
  expect(await answered.json()).toMatchObject({
    status: 'completed',
    content: 'Ordered.',
    answered: [{ tool: 'place_order', answeredBy: { user: 'u3' } }],
  });
  const next = await chat(shop, CUSTOMER, { text: 'what did I order?', conversationId });
  expect(JSON.parse(next[0]?.data.text)).toMatchObject([{ item: 'tea', quantity: 50, userId: 'u1' }]);
  const database = shop.app.get(DATABASE);
  const messages = String(database.prepare('SELECT messages FROM conversations').get()?.messages);
  expect(messages).toContain('Forbidden resource');
  expect(database.prepare('SELECT user_id, action FROM audit').all()).toMatchObject([
    { user_id: 'u1', action: expect.stringMatching(/^placed order/) },
  ]);
  expect((await post(answersUrl, CLERK, { answers })).status).toBe(409);
});

test('concurrent requests see only the data of their own user', async () => {
  const reply = (asked: string) =>
    asked === 'tool' ? { content: 'done', toolCalls: [], finishReason: 'stop' as const } : undefined;
  const provider: LLMProvider = {
    async chat({ messages }) {
      const known = reply(messages.at(-1)?.role ?? '');
      return (
        known ?? {
          content: '',
          toolCalls: [{ id: 'a', name: 'list_orders', arguments: {} }],
          finishReason: 'tool_calls',
        }
      );
    },
  };
  const shop = await openShop(provider);
  const tokens = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? CUSTOMER : OTHER));
  const answers = await Promise.all(tokens.map((token) => chat(shop, token, { text: 'my orders' })));
  const owners = answers.map((events) => JSON.parse(events[0]?.data.text)[0].userId);
  expect(owners).toEqual(tokens.map((token) => (token === CUSTOMER ? 'u1' : 'u2')));
});

test('the same tools are served over MCP behind the same guard', async () => {
  const shop = await openShop(new ScriptedProvider([]));
  const connect = async (token: string): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' });
    const headers = { authorization: `Bearer ${token}` };
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`), { requestInit: { headers } }),
    );
    return client;
  };
  const customer = await connect(CUSTOMER);
  const { tools } = await customer.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    'list_orders',
    'place_order',
    'cancel_order',
    'report_sales',
  ]);
  const listed = await customer.callTool({ name: 'list_orders', arguments: {} });
  expect(JSON.stringify(listed.content)).toContain('cups');
  const refused = await customer.callTool({ name: 'report_sales', arguments: {} });
  expect(refused).toMatchObject({ isError: true });
  expect(JSON.stringify(refused.content)).toContain('Forbidden resource');
  const placed = await customer.callTool({ name: 'place_order', arguments: { item: 'jam', quantity: 1 } });
  expect(JSON.stringify(placed.content)).toContain('jam');
  const clerk = await connect(CLERK);
  const report = await clerk.callTool({ name: 'report_sales', arguments: {} });
  expect(JSON.stringify(report.content)).toContain('jam');
  await expect(connect('nobody')).rejects.toThrow();
  await customer.close();
  await clerk.close();
});

test('the offline provider serves the shop without a network', async () => {
  const shop = await openShop(new OfflineProvider());
  const events = await chat(shop, CUSTOMER, { text: 'List my orders' });
  expect(events.find(({ event }) => event === 'call-end')?.data.tool).toBe('list_orders');
  expect(events.at(-1)?.data.status).toBe('completed');
});
