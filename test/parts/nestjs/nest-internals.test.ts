import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import {
  Body,
  type CanActivate,
  Controller,
  createParamDecorator,
  DefaultValuePipe,
  Headers,
  Inject,
  Injectable,
  Param,
  ParseIntPipe,
  Query,
  Req,
  Scope,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ApplicationConfig, ContextIdFactory, ModulesContainer } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  contextWithin,
  decoratedParameters,
  destroyFirst,
  ExternalExceptionFilterContext,
  enhancerClasses,
  GuardsConsumer,
  hostOf,
  injectedParameters,
  instanceIn,
  isController,
  isMade,
  isStatic,
  NestEnhancers,
  PipesConsumer,
  pipeDefault,
  REQUEST_CONTEXT_ID,
  toolExecutionContext,
} from '../../../src/surfaces/nestjs/nest-internals.js';

const ROOM = new URL('../../../src/surfaces/nestjs/', import.meta.url);

@Injectable()
class LetsPass implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

@Injectable()
class Once {}

@Injectable({ scope: Scope.REQUEST })
class OfRequest {}

@Injectable()
class Dependent {
  constructor(readonly dependency: OfRequest) {}
}

const start = async (providers: Type[]) => {
  const module = await Test.createTestingModule({ providers }).compile();
  return { module, modules: module.get(ModulesContainer), config: module.get(ApplicationConfig) };
};

const creators = async (providers: Type[]) => {
  const { modules, config } = await start(providers);
  return { config, modules, made: new NestEnhancers(modules, config, ExternalExceptionFilterContext) };
};

test('undocumented parts of NestJS are imported in one file only', () => {
  const strangers = readdirSync(ROOM).filter((name) =>
    /'@nestjs\/(common|core)\//.test(readFileSync(new URL(name, ROOM), 'utf8')),
  );
  expect(strangers).toEqual(['nest-internals.ts']);
});

test('a provider is static unless it or a dependency is request-scoped', async () => {
  const { modules } = await start([Once, OfRequest, Dependent]);
  const wrapperOf = (provider: Type) => hostOf(modules, provider).wrapper;
  expect([Once, OfRequest, Dependent].map((provider) => isStatic(wrapperOf(provider)))).toEqual([
    true,
    false,
    false,
  ]);
  expect(isMade(wrapperOf(Once))).toBe(true);
});

test('an instance is the existing one, or created in the injection context of a call', async () => {
  const { module, modules } = await start([Once, OfRequest]);
  const contextId = ContextIdFactory.create();
  expect(await instanceIn(hostOf(modules, Once), contextId)).toBe(module.get(Once));
  const made = await instanceIn(hostOf(modules, OfRequest), contextId);
  expect(made).toBeInstanceOf(OfRequest);
  expect(await instanceIn(hostOf(modules, OfRequest), contextId)).toBe(made);
  expect(await instanceIn(hostOf(modules, OfRequest), ContextIdFactory.create())).not.toBe(made);
});

test('a provider that no module has is an error', async () => {
  const { modules } = await start([]);
  expect(() => hostOf(modules, Once)).toThrow('This application does not import ToolwrightModule.');
});

test('Nest finds the injection context that was stored on a request', () => {
  const contextId = ContextIdFactory.create();
  const request = { [REQUEST_CONTEXT_ID]: contextId };
  expect(ContextIdFactory.getByRequest(request)).toBe(contextId);
});

test('a context within another context applies to one provider only', async () => {
  const { modules } = await start([Once]);
  const outer = ContextIdFactory.create();
  const own = contextWithin(outer, hostOf(modules, Once).wrapper);
  expect(own.getParent?.({ token: Once, isTreeDurable: false })).toBe(own);
  expect(own.getParent?.({ token: OfRequest, isTreeDurable: false })).toBe(outer);
});

test('the module that is destroyed first has the distance 0 from the root', async () => {
  const { modules } = await start([Once]);
  const [module] = modules.values();
  destroyFirst(modules, module?.metatype as Type);
  expect(module?.distance).toBe(0);
});

test('the enhancer classes of a class, its method and its parameters are found', () => {
  class Handlers {
    run(): void {}
  }
  class Passes {}
  const given = new LetsPass();
  UseGuards(LetsPass, given)(Handlers);
  UseInterceptors(Passes as never)(Handlers.prototype, 'run', {
    value: Handlers.prototype.run,
  });
  expect(enhancerClasses([Handlers, Handlers.prototype.run], [ParseIntPipe, new ParseIntPipe()])).toEqual([
    { type: LetsPass, subtype: 'guard' },
    { type: Passes, subtype: 'interceptor' },
    { type: ParseIntPipe, subtype: 'pipe' },
  ]);
});

test('a global enhancer that is added later changes the list of globals', async () => {
  const { config, made } = await creators([]);
  const before = made.globals().map((list) => ({ list, length: list.length }));
  config.useGlobalGuards(new LetsPass());
  const now = made.globals();
  expect(before.every(({ list, length }, index) => list === now[index] && list.length === length)).toBe(
    false,
  );
});

test('an enhancer class is added to a module once', async () => {
  const { modules, made } = await creators([Once]);
  const { module, wrapper } = hostOf(modules, Once);
  const added = await made.injectable(module, { type: LetsPass, subtype: 'guard' });
  expect(added.instance).toBeInstanceOf(LetsPass);
  expect(await made.injectable(module, { type: LetsPass, subtype: 'guard' })).toBe(added);
  await made.load(added, ContextIdFactory.create(), wrapper);
  class Handlers {}
  const handler = (): void => {};
  UseGuards(LetsPass)(Handlers);
  expect(made.guards.create(new Handlers(), handler, module.token)).toEqual([added.instance]);
});

test('the execution context of a tool call has the type tool, its class, its handler and its request', () => {
  const handler = (): void => {};
  const context = toolExecutionContext([{ url: '/' }, undefined, undefined, 'call'], Once, handler);
  expect(context.getType<string>()).toBe('tool');
  expect(context.getClass()).toBe(Once);
  expect(context.getHandler()).toBe(handler);
  expect(context.getArgByIndex(3)).toBe('call');
  expect(context.switchToHttp().getRequest()).toEqual({ url: '/' });
});

test('guards and pipes are run by Nest’s own consumers', async () => {
  expect(await new GuardsConsumer().pickResult(Promise.resolve(true))).toBe(true);
  const metadata = { type: 'custom', metatype: Number } as const;
  expect(await new PipesConsumer().applyPipes('7', metadata, [new ParseIntPipe()])).toBe(7);
});

test('parameter decorators are read with their source in a route', () => {
  const Custom = createParamDecorator((data) => `custom ${data}`);
  class Handlers {
    run(..._given: unknown[]): void {}
  }
  const decorators = [
    Body(),
    Query('page', ParseIntPipe),
    Param('id'),
    Req(),
    Headers('host'),
    Custom('data'),
  ];
  for (const [index, decorate] of decorators.entries()) decorate(Handlers.prototype, 'run', index);
  const found = decoratedParameters(Handlers, 'run');
  const told = [...found]
    .sort(([one], [other]) => one - other)
    .map(([, { source, data, pipes, isOfPath }]) => [source, data, pipes, isOfPath === true]);
  expect(told).toEqual([
    ['model', undefined, [], false],
    ['model', 'page', [ParseIntPipe], false],
    ['model', 'id', [], true],
    ['call', undefined, [], false],
    ['http', 'host', [], false],
    ['call', 'data', [], false],
  ]);
  const execution = toolExecutionContext([{ url: '/' }], Handlers, () => {});
  expect(found.get(3)?.read(execution)).toEqual({ url: '/' });
  expect(found.get(5)?.read(execution)).toBe('custom data');
});

test('the default of a DefaultValuePipe is read', () => {
  expect(pipeDefault([ParseIntPipe, new DefaultValuePipe(7)])).toEqual({ value: 7 });
  expect(pipeDefault([ParseIntPipe])).toBeUndefined();
});

test('controllers are recognized, and the injected parameters of a constructor are counted', () => {
  class Named {
    readonly given: readonly unknown[];

    constructor(...given: [unknown, unknown]) {
      this.given = given;
    }
  }
  Inject('one')(Named, undefined as never, 0);
  Inject('other')(Named, undefined as never, 1);
  class Routes {}
  Controller()(Routes);
  expect([isController(Routes), isController(Once)]).toEqual([true, false]);
  expect([Dependent, Named, Once].map(injectedParameters)).toEqual([1, 2, 0]);
});
