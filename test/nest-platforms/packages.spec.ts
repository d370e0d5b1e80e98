import { afterEach, expect, test } from '@jest/globals';
import { CACHE_MANAGER, CacheInterceptor, CacheModule } from '@nestjs/cache-manager';
import { Controller, Get, Inject, Injectable, Param } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { AuthGuard, PassportModule, PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import { Tool, ToolRegistry } from 'toolwright';
import { ToolwrightService, toolCallOf } from 'toolwright/nestjs';
import { Caller, CallerTools } from './callers.js';
import { listen } from './listen.js';
import { promptFor, provider } from './model.js';

// This CommonJS package requires an ES module, which Jest supports only after the module was loaded.
const { ThrottlerGuard, ThrottlerModule } = await import('@nestjs/throttler');

// Guards and interceptors of popular packages with routes and tools.

let calls = 0;

@Injectable()
class CountingTools {
  @Tool('Count')
  count() {
    calls += 1;
    return `call ${calls}`;
  }

  @Tool('Greet')
  greet() {
    return 'hello';
  }
}

@Controller()
class ToolsController {
  constructor(
    @Inject(ToolRegistry) private readonly tools: ToolRegistry,
    @Inject(ToolwrightService) private readonly toolwright: ToolwrightService,
  ) {}

  @Get('call/:names')
  async call(@Param('names') names: string) {
    const answers: string[] = [];
    for (const name of names.split(',')) answers.push((await this.tools.execute(name)).forLLM);
    return answers;
  }

  @Get('run/:name')
  async run(@Param('name') name: string) {
    return (await this.toolwright.run(promptFor(name))).content;
  }
}

afterEach(() => {
  calls = 0;
});

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

const UNEXPECTED = /^The tool 'count' was refused: Internal error \(ref \w+\)$/;

const refused = (reason: string) => `The tool 'count' was refused: ${reason}`;

test('the ThrottlerGuard with default options refuses every call, because it sets response headers', async () => {
  const { url } = await listen({
    imports: [ThrottlerModule.forRoot([{ ttl: 60_000, limit: 2 }])],
    controllers: [ToolsController],
    providers: [CountingTools, { provide: APP_GUARD, useClass: ThrottlerGuard }],
  });
  expect(await (await fetch(`${url}/call/count`)).json()).toEqual([expect.stringMatching(UNEXPECTED)]);
  expect(calls).toBe(0);
});

test('the ThrottlerGuard without headers counts the calls of each tool', async () => {
  const { url } = await listen({
    imports: [ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 2 }], setHeaders: false })],
    controllers: [ToolsController],
    providers: [CountingTools, { provide: APP_GUARD, useClass: ThrottlerGuard }],
  });
  const answer = await fetch(`${url}/call/count,count,count,greet`);
  const tooMany = refused('ThrottlerException: Too Many Requests');
  expect(await answer.json()).toEqual(['call 1', 'call 2', tooMany, 'hello']);
});

test('the ThrottlerGuard can skip tool calls', async () => {
  const { url } = await listen({
    imports: [
      ThrottlerModule.forRoot({
        throttlers: [{ ttl: 60_000, limit: 1 }],
        skipIf: (context) => toolCallOf(context) !== undefined,
      }),
    ],
    controllers: [ToolsController],
    providers: [CountingTools, { provide: APP_GUARD, useClass: ThrottlerGuard }],
  });
  expect(await (await fetch(`${url}/call/count,count`)).json()).toEqual(['call 1', 'call 2']);
  expect((await fetch(`${url}/call/count,count`)).status).toBe(429);
});

test('the AuthGuard of passport authenticates routes and tools', async () => {
  @Injectable()
  class TokenStrategy extends PassportStrategy(Strategy) {
    validate(token: string) {
      return token === 'invalid' ? false : token;
    }
  }
  const { url } = await listen({
    options: { provider, model: 'm' },
    imports: [PassportModule],
    controllers: [ToolsController],
    providers: [Caller, CallerTools, TokenStrategy, { provide: APP_GUARD, useClass: AuthGuard('bearer') }],
  });
  expect(await (await fetch(`${url}/run/who`, as('ada'))).text()).toMatch(/^ada \d+$/);
  expect((await fetch(`${url}/run/who`, as('invalid'))).status).toBe(401);
});

test('a call without a request is refused by the AuthGuard of passport', async () => {
  class TokenStrategy extends PassportStrategy(Strategy) {
    validate(token: string) {
      return token;
    }
  }
  const { app } = await listen({
    imports: [PassportModule],
    providers: [CountingTools, TokenStrategy, { provide: APP_GUARD, useClass: AuthGuard('bearer') }],
  });
  const tools = app.get(ToolRegistry);
  const toolwright = app.get(ToolwrightService);
  const callFor = (request: object) => tools.executeWithContext('count', {}, toolwright.scopeOf(request));
  expect((await tools.execute('count')).forLLM).toMatch(UNEXPECTED);
  expect((await callFor({ headers: {} })).forLLM).toBe(refused('Unauthorized'));
  expect((await callFor(as('ada'))).forLLM).toBe('call 1');
});

test('the CacheInterceptor caches responses of routes and never results of tools', async () => {
  const { app, url } = await listen({
    imports: [CacheModule.register({ ttl: 60_000 })],
    controllers: [ToolsController],
    providers: [CountingTools, { provide: APP_INTERCEPTOR, useClass: CacheInterceptor }],
  });
  const get = async () => (await fetch(`${url}/call/count,greet,count`)).json();
  expect(await get()).toEqual(['call 1', 'hello', 'call 2']);
  expect(await get()).toEqual(['call 1', 'hello', 'call 2']);
  expect(await app.get(CACHE_MANAGER).get('/call/count,greet,count')).toEqual(['call 1', 'hello', 'call 2']);
  const scope = app.get(ToolwrightService).scopeOf({});
  expect((await app.get(ToolRegistry).executeWithContext('count', {}, scope)).forLLM).toBe('call 3');
});
