import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Param, Query, Res, Scope, Sse } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import type { FastifyReply } from 'fastify';
import { filter, from, map } from 'rxjs';
import { Tool, ToolRegistry } from 'toolwright';
import { ToolwrightService } from 'toolwright/nestjs';
import { aborted, Caller, CallerTools, UserGuard } from './callers.js';
import { listen } from './listen.js';
import { promptFor, provider } from './model.js';

@Controller()
class ChatController {
  constructor(
    @Inject(ToolwrightService) private readonly toolwright: ToolwrightService,
    @Inject(ToolRegistry) private readonly tools: ToolRegistry,
  ) {}

  @Get('call/:tool')
  async call(@Param('tool') tool: string) {
    return (await this.tools.execute(tool)).forLLM;
  }

  @Get('run/:tool')
  async run(@Param('tool') tool: string) {
    return (await this.toolwright.run(promptFor(tool))).content;
  }

  @Sse('events')
  events(@Query('tool') tool: string) {
    return from(this.toolwright.stream(promptFor(tool))).pipe(
      filter((event) => event.type === 'call-end'),
      map(({ result }) => ({ type: 'call-end', data: { text: result.forLLM } })),
    );
  }

  @Get('raw/:tool')
  async raw(@Param('tool') tool: string, @Res() reply: FastifyReply) {
    const disconnected = new AbortController();
    reply.hijack();
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
    reply.raw.on('close', () => disconnected.abort(new Error('the client has disconnected')));
    for await (const event of this.toolwright.stream(promptFor(tool), { signal: disconnected.signal })) {
      if (event.type === 'call-start') reply.raw.write('event: call-start\ndata: {}\n\n');
      if (event.type === 'call-end') reply.raw.write(`event: call-end\ndata: ${event.result.forLLM}\n\n`);
    }
    reply.raw.end();
  }
}

@Controller('shared')
class SharedController {
  constructor(
    @Inject(Caller) private readonly caller: Caller,
    @Inject(ToolRegistry) private readonly tools: ToolRegistry,
  ) {}

  @Get()
  async shared() {
    const calls = await Promise.all([1, 2].map(() => this.tools.execute('who')));
    return [`${this.caller.name} ${this.caller.number}`, ...calls.map(({ forLLM }) => forLLM)];
  }
}

const shop = () =>
  listen({
    options: { provider, model: 'm' },
    controllers: [ChatController, SharedController],
    providers: [Caller, CallerTools, { provide: APP_GUARD, useClass: UserGuard }],
  });

const as = (authorization: string) => ({ headers: { authorization } });

async function get(url: string, user: string): Promise<string> {
  return (await fetch(url, as(user))).text();
}

test('a request-scoped toolset receives the request of Fastify and shares the instances of its handler', async () => {
  const { url } = await shop();
  const users = Array.from({ length: 20 }, (_, index) => `user-${index}`);
  const shared = await Promise.all(users.map((user) => get(`${url}/shared`, user)));
  for (const [index, answer] of shared.entries()) {
    const seen: readonly string[] = JSON.parse(answer);
    expect(new Set(seen).size).toBe(1);
    expect(seen[0]).toMatch(new RegExp(`^user-${index} `));
  }
  const alone = await Promise.all(users.map((user) => get(`${url}/run/who`, user)));
  expect(alone.map((answer) => answer.split(' ')[0])).toEqual(users);
});

test('a guard reads the user that it has set on the request of Fastify', async () => {
  const { url } = await shop();
  expect(await get(`${url}/call/secret`, 'ada')).toBe('the secret');
  expect(await get(`${url}/call/secret`, 'bob')).toBe("The tool 'secret' was refused: Forbidden resource");
  expect((await fetch(`${url}/call/secret`)).status).toBe(401);
});

test('server-sent events by `@Sse` and by hand stream a run with the user of its request', async () => {
  const { url } = await shop();
  const sse = await get(`${url}/events?tool=who`, 'ada');
  expect(sse).toMatch(/event: call-end\n(.*\n)?data: \{"text":"ada \d+"\}/);
  const raw = await fetch(`${url}/raw/who`, as('bob'));
  expect(raw.headers.get('content-type')).toBe('text/event-stream');
  expect(await raw.text()).toMatch(/event: call-end\ndata: bob \d+\n\n$/);
});

test('a run is aborted when its client disconnects', async () => {
  const { url } = await shop();
  const controller = new AbortController();
  const response = await fetch(`${url}/raw/wait`, { ...as('ada'), signal: controller.signal });
  await response.body?.getReader().read();
  controller.abort();
  expect(await aborted.promise).toContain('the client has disconnected');
});

test('a shutdown waits for a running call of a request', async () => {
  @Injectable({ scope: Scope.DEFAULT })
  class Slow {
    readonly started = new EventTarget();
    readonly go = new EventTarget();

    @Tool('Work')
    async work() {
      this.started.dispatchEvent(new Event('started'));
      await once(this.go, 'go');
      return 'worked';
    }
  }
  const { app, url } = await listen({
    options: { provider, model: 'm', shutdownTimeoutMs: 60_000 },
    controllers: [ChatController],
    providers: [Slow],
  });
  const slow = app.get(Slow);
  const started = once(slow.started, 'started');
  const answer = get(`${url}/run/work`, 'ada');
  await started;
  const closing = app.close();
  slow.go.dispatchEvent(new Event('go'));
  expect(await answer).toBe('worked');
  await closing;
});
