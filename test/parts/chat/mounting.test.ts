import { expect, test } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Hono } from 'hono';
import type { LLMProvider } from 'toolwright';
import { type ChatHandler, createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { serve } from '../../setup/loopback.js';
import { readMessage, said } from './chat-reader.js';

const provider: LLMProvider = {
  chat: async ({ messages }) => ({
    content: `heard: ${messages.at(-1)?.content}`,
    toolCalls: [],
    finishReason: 'stop',
  }),
};

interface Mounted extends AsyncDisposable {
  ask(path: string, init?: RequestInit): Promise<Response>;
}

class Empty {}

/** By framework; each calls the handler at `/api/chat` and below. */
const MOUNTS: Readonly<Record<string, (chat: ChatHandler) => Promise<Mounted>>> = {
  'node:http': async ({ node }) => {
    const server = await serve(node);
    return {
      ask: (path, init) => fetch(`${server.url}/api/chat${path}`, init),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  'Express after a JSON parser': async ({ node }) => {
    const app = await NestFactory.create<NestExpressApplication>(Empty, { logger: false });
    app.useBodyParser('json');
    app.getHttpAdapter().getInstance().use('/api', node);
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    return {
      ask: (path, init) => fetch(`${url}/api/chat${path}`, init),
      [Symbol.asyncDispose]: () => app.close(),
    };
  },
  Hono: async ({ fetch: answer }) => {
    const app = new Hono();
    app.all('/api/chat/*', (context) => answer(context.req.raw));
    return {
      ask: async (path, init) => app.request(`/api/chat${path}`, init),
      async [Symbol.asyncDispose]() {},
    };
  },
};

const newChat = () =>
  createChatHandler({ provider, model: 'm', store: new MemoryRunStore(), authenticate: () => 'u1' });

test.each(Object.entries(MOUNTS))(
  'createChatHandler mounted in %s accepts a message, streams, and returns the history',
  async (_where, mount) => {
    const chat = newChat();
    await using mounted = await mount(chat);
    const sent = await mounted.ask('', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'c1', messages: [said('Hi é', 'm1')] }),
    });
    expect([sent.status, sent.headers.get('x-vercel-ai-ui-message-stream')]).toEqual([200, 'v1']);
    const { message, violations } = await readMessage(sent);
    expect(violations).toEqual([]);
    expect(message?.parts.at(-1)).toMatchObject({ text: 'heard: Hi é' });
    const kept = (await (await mounted.ask('/c1/messages')).json()) as readonly { readonly id: string }[];
    expect(kept.map(({ id }) => id)).toEqual(['m1', 'turn-1']);
    await chat.close();
  },
);

test.each(Object.entries(MOUNTS))(
  'createChatHandler mounted in %s refuses a deeply nested message with the same error',
  async (_where, mount) => {
    const chat = newChat();
    await using mounted = await mount(chat);
    for (const deep of [
      '['.repeat(40_000) + ']'.repeat(40_000),
      '{"a":'.repeat(15_000) + 1 + '}'.repeat(15_000),
    ]) {
      const message = JSON.stringify({ ...said('Hi', 'm1'), metadata: 'DEEP' }).replace('"DEEP"', deep);
      const refused = await mounted.ask('', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: `{"id":"c1","messages":[${message}]}`,
      });
      expect([refused.status, await refused.json()]).toEqual([
        400,
        { error: { message: 'The body is nested deeper than 500 levels.' } },
      ]);
    }
    await chat.close();
  },
);

test('a body that was already read and is not in `body` is reported', async () => {
  const chat = createChatHandler({
    provider,
    model: 'm',
    store: new MemoryRunStore(),
    authenticate: () => 'u1',
  });
  await using server = await serve((request, response) => {
    request.resume().once('end', () => chat.node(request, response));
  });
  const refused = await fetch(`${server.url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'c1', messages: [said('Hi')] }),
  });
  expect([refused.status, await refused.json()]).toEqual([
    500,
    { error: { code: 'body_read_before', message: expect.stringContaining('app.all(path, handler.node)') } },
  ]);
  await chat.close();
});
