import { afterEach, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance } from 'fastify';
import { defineTool } from 'toolwright';
import { type ChatHandler, createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { readMessage, said } from '../parts/chat/chat-reader.js';
import { provider } from './model.js';

// Fastify without NestJS. Its parser reads the body before the handler runs.

const open = new Set<FastifyInstance>();
const chats = new Set<ChatHandler>();

afterEach(async () => {
  for (const app of open) await app.close();
  for (const chat of chats) await chat.close();
  open.clear();
  chats.clear();
});

async function listen(mount: (app: FastifyInstance, chat: ChatHandler) => void): Promise<string> {
  const chat = createChatHandler({
    provider,
    model: 'm',
    tools: [defineTool({ name: 'greet', description: 'Greets', approval: true, execute: () => 'Grüße' })],
    store: new MemoryRunStore(),
    authenticate: ({ headers }) => headers.get('authorization'),
  });
  chats.add(chat);
  const app = Fastify();
  open.add(app);
  mount(app, chat);
  return `${await app.listen({ port: 0, host: '127.0.0.1' })}/api/chat`;
}

const headers = { 'content-type': 'application/json', authorization: 'ada' };

function post(url: string, body: object): Promise<Response> {
  return fetch(url, { method: 'POST', headers, body: JSON.stringify({ id: 'c1', ...body }) });
}

test('`chat.node` is a route handler of Fastify for messages, approvals and reloads, and keeps the headers of hooks', async () => {
  const url = await listen((app, chat) => {
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('access-control-allow-origin', 'https://shop.example');
    });
    app.all('/api/chat', chat.node);
    app.all('/api/chat/*', chat.node);
  });
  const suspended = await post(url, { messages: [said('greet', 'm1')] });
  expect(suspended.headers.get('access-control-allow-origin')).toBe('https://shop.example');
  const { message, violations } = await readMessage(suspended);
  const parts = message?.parts.map((part) =>
    'approval' in part && part.approval
      ? { ...part, state: 'approval-responded', approval: { id: part.approval.id, approved: true } }
      : part,
  );
  const answered = await readMessage(await post(url, { messages: [{ ...message, parts }] }), message);
  expect(answered.message?.parts.at(-1)).toMatchObject({ text: 'Grüße' });
  expect([...violations, ...answered.violations]).toEqual([]);
  const stored = (await (await fetch(`${url}/c1/messages`, { headers })).json()) as readonly { id: string }[];
  expect(stored.map(({ id }) => id)).toEqual(['m1', 'turn-1']);
  expect((await fetch(`${url}/c1/stream`, { headers })).status).toBe(204);
  expect((await fetch(`${url}/c1/stream`, { headers: { authorization: 'eve' } })).status).toBe(403);
  expect(
    (await fetch(`${url}/c1/stream`, { method: 'DELETE', headers: { authorization: 'ada' } })).status,
  ).toBe(204);
});

test('the error for a request whose body Fastify has read explains how to mount the handler', async () => {
  const url = await listen((app, chat) => {
    app.post('/api/chat', (request, reply) => {
      reply.hijack();
      chat.node(request.raw, reply.raw);
    });
  });
  const refused = await post(url, { messages: [said('greet')] });
  expect([refused.status, await refused.json()]).toEqual([
    500,
    { error: { code: 'body_read_before', message: expect.stringContaining('app.all(path, handler.node)') } },
  ]);
});
