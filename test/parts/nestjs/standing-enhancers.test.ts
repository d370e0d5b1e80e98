import { expect, test } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { Tool } from 'toolwright';
import { boot } from './boot.js';

@Injectable()
class PassesOn implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler) {
    return next.handle();
  }
}

@UseInterceptors(PassesOn)
@Injectable()
class Words {
  @Tool('Say a word')
  say(word: string) {
    return word;
  }

  @Tool({ description: 'Wind up when it is told to stop', timeoutMs: 20 })
  async windUp(signal: AbortSignal) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return 'wound up';
  }

  @Tool({ description: 'Never ends', timeoutMs: 20 })
  hang() {
    return new Promise(() => {});
  }
}

const shouting: PipeTransform = {
  transform: (value: unknown) => (typeof value === 'string' ? value.toUpperCase() : value),
};
const refusing: CanActivate = { canActivate: () => false };

test('global enhancers that are added after a call apply to the next call, however they are added', async () => {
  const { module, tools } = await boot({ providers: [Words] });
  const config = module.get(ApplicationConfig);
  const say = async () => (await tools.execute('say', { word: 'yes' })).forLLM;
  expect([await say(), await say()]).toEqual(['yes', 'yes']);
  config.useGlobalPipes(shouting);
  expect(await say()).toBe('YES');
  config.addGlobalGuard(refusing);
  expect(await say()).toMatch('Forbidden resource');
  await module.close();
});

@Injectable({ scope: Scope.REQUEST })
class OncePerCall implements CanActivate {
  static made = 0;

  constructor() {
    OncePerCall.made += 1;
  }

  canActivate(): boolean {
    return true;
  }
}

@UseGuards(OncePerCall)
@Injectable()
class GuardedWords extends Words {}

test('a request-scoped guard is created for each call', async () => {
  const { module, tools } = await boot({ providers: [GuardedWords] });
  for (const word of ['a', 'b', 'c']) expect((await tools.execute('say', { word })).forLLM).toBe(word);
  expect(OncePerCall.made).toBe(3);
  await module.close();
});

test('behind an interceptor, a method that takes the signal decides the result of an aborted call', async () => {
  const { module, tools } = await boot({ providers: [Words] });
  const stop = new AbortController();
  const call = tools.executeWithContext('wind_up', {}, { signal: stop.signal });
  setImmediate(() => stop.abort());
  expect((await call).forLLM).toBe('wound up');
  await module.close();
});

test('a shutdown does not wait for a method whose call has timed out', async () => {
  const { module, tools } = await boot({ options: { shutdownTimeoutMs: 60_000 }, providers: [Words] });
  expect((await tools.execute('hang')).forLLM).toMatch('timed out');
  await module.close();
});
