import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Hono } from 'hono';
import { type AssistantHandlerOptions, createAssistantHandler, toNodeHandler } from 'toolwright/satellite';
import { ScriptedProvider } from 'toolwright/testing';
import { disableTimeouts, type RunningServer, serve } from '../../setup/loopback.js';
import { requestText } from './assistant-server.js';
import { postForEvents } from './event-stream.js';

const REPLIES = [{ content: requestText('a') }, { content: 'Done it is.' }];

function handlerOf(options: Partial<AssistantHandlerOptions> = {}) {
  return createAssistantHandler({ provider: new ScriptedProvider(REPLIES), model: 'm', ...options });
}

class Empty {}
Module({})(Empty);

/** A NestJS application on Express, by default with its body parsers. */
async function serveNest(
  mount: (app: NestExpressApplication) => void,
  options: { readonly bodyParser?: boolean } = {},
): Promise<RunningServer> {
  const app = await NestFactory.create<NestExpressApplication>(Empty, { logger: false, ...options });
  mount(app);
  disableTimeouts(app.getHttpServer());
  await app.listen(0, '127.0.0.1');
  return { url: await app.getUrl(), [Symbol.asyncDispose]: () => app.close() };
}

const MOUNTS: readonly (readonly [string, string, () => Promise<RunningServer>])[] = [
  ['Node’s http', '', () => serve(toNodeHandler(handlerOf()))],
  [
    'Node’s http, below a path',
    '/assistant',
    () => serve(toNodeHandler(handlerOf({ basePath: '/assistant' }))),
  ],
  [
    'Hono, as routes',
    '',
    () => {
      const handler = handlerOf();
      const app = new Hono();
      app.all('/v1/chat/*', ({ req }) => handler(req.raw));
      app.all('/v1/chat', ({ req }) => handler(req.raw));
      return serve(toNodeHandler(async (request) => app.fetch(request)));
    },
  ],
  [
    'Hono, mounted below a path',
    '/assistant',
    () => {
      const app = new Hono().mount('/assistant', handlerOf());
      return serve(toNodeHandler(async (request) => app.fetch(request)));
    },
  ],
  ['NestJS', '', () => serveNest((app) => app.use('/v1/chat', toNodeHandler(handlerOf())))],
  [
    'NestJS without its body parsers',
    '',
    () => serveNest((app) => app.use('/v1/chat', toNodeHandler(handlerOf())), { bodyParser: false }),
  ],
  [
    'Express, below a path and behind a JSON parser',
    '/assistant',
    () =>
      serveNest((app) => {
        app.useBodyParser('json');
        const handler = handlerOf({ basePath: '/assistant' });
        app.getHttpAdapter().getInstance().use('/assistant', toNodeHandler(handler));
      }),
  ],
  [
    'Express, behind a text parser',
    '',
    () =>
      serveNest(
        (app) => {
          app.useBodyParser('text', { type: '*/*' });
          app.use('/v1/chat', toNodeHandler(handlerOf()));
        },
        { bodyParser: false },
      ),
  ],
];

describe.each(MOUNTS)('mounted in %s', (_where, path, start) => {
  test('requests, results, state, events and errors work', async () => {
    await using server = await start();
    const url = `${server.url}${path}`;
    const post = (body: string) =>
      fetch(`${url}/v1/chat`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const said = await post('{"conversation_id":"c1","messages":[{"role":"user","content":"Hi é"}]}');
    expect([said.status, await said.json()]).toEqual([
      200,
      expect.objectContaining({ conversation_id: 'c1', tool_request: { name: 'a', arguments: {} } }),
    ]);
    const state = await fetch(`${url}/v1/chat/c1`);
    expect([state.status, state.headers.get('etag')]).toEqual([200, said.headers.get('etag')]);
    const events: string[] = [];
    const messages = [{ role: 'tool_result', name: 'a', content: '1' }];
    for await (const { event } of postForEvents(url, { conversation_id: 'c1', messages })) events.push(event);
    expect(events).toEqual(['text-delta', 'text-delta', 'text-delta', 'response']);
    const wrong = await post('{"messages":[]}');
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { error: { code: 'invalid_request' } }]);
  });
});
