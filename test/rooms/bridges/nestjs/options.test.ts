import { expect, test } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { InvalidOptionsError, Tool, ToolDeclarationError, ToolwrightError } from 'toolwright';
import { ToolwrightModule, type ToolwrightModuleOptions, ToolwrightService } from 'toolwright/nestjs';

@Injectable()
class Settings {
  createToolwrightOptions(): ToolwrightModuleOptions {
    return { model: 'm' };
  }
}

@Injectable()
class NoSettings {}

@Injectable()
class Shop {
  @Tool('Ping')
  ping() {
    return 'pong';
  }
}

function create(...imports: Parameters<typeof Module>[0]['imports'] & object) {
  return Test.createTestingModule({ imports })
    .setLogger(false as never)
    .compile();
}

test.each<[string, () => Parameters<typeof create>, string]>([
  ['tools that are a word', () => [ToolwrightModule.forRoot({ tools: 'nope' as never })], "tools is 'nope'"],
  ['data that is an object', () => [ToolwrightModule.forRoot({ data: {} as never })], 'data is {}'],
  [
    'a time with a unit',
    () => [ToolwrightModule.forRoot({ shutdownTimeoutMs: '10s' as never })],
    "shutdownTimeoutMs is '10s'",
  ],
  [
    'a time below zero',
    () => [ToolwrightModule.forRoot({ shutdownTimeoutMs: -5 })],
    'shutdownTimeoutMs is -5',
  ],
  ['no options', () => [ToolwrightModule.forRoot(null as never)], 'its options are null'],
  [
    'a factory that gives nothing',
    () => [ToolwrightModule.forRootAsync({ useFactory: () => undefined as never })],
    'its options are undefined',
  ],
  [
    'a factory that promises nothing',
    () => [ToolwrightModule.forRootAsync({ useFactory: async () => undefined as never })],
    'its options are undefined',
  ],
  [
    'a class without the method',
    () => [ToolwrightModule.forRootAsync({ useClass: NoSettings as never })],
    'NoSettings has no method createToolwrightOptions',
  ],
  [
    'a feature that is not there',
    () => [ToolwrightModule.forRoot(), ToolwrightModule.forFeature(undefined as never)],
    'it was given undefined instead of a list of tools',
  ],
  [
    'a feature that is a class',
    () => [ToolwrightModule.forRoot(), ToolwrightModule.forFeature(Shop as never)],
    'it was given a function instead of a list of tools',
  ],
  [
    'a feature without a root',
    () => [ToolwrightModule.forFeature([Shop])],
    'the application has no ToolwrightModule.forRoot',
  ],
])('%s is told with what to write instead', async (_, imports, sentence) => {
  const created = (async () => create(...imports()))();
  const error = await created.catch((thrown: unknown) => thrown);
  expect([ToolDeclarationError, InvalidOptionsError]).toContain((error as Error).constructor);
  expect((error as Error).message).toContain(sentence);
  expect((error as Error).message).toContain('Write instead:');
});

test('options that are right are taken, whatever brings them', async () => {
  for (const root of [
    ToolwrightModule.forRoot({ shutdownTimeoutMs: Number.POSITIVE_INFINITY, tools: [] }),
    ToolwrightModule.forRootAsync({ useClass: Settings }),
    ToolwrightModule.forRootAsync({ useFactory: async () => ({ shutdownTimeoutMs: 0 }) }),
  ]) {
    const module = await create(root, ToolwrightModule.forFeature([Shop]));
    expect(module.get(ToolwrightService)).toBeDefined();
    await module.close();
  }
});

test('a stored run without a provider and without a store is told of both', async () => {
  const service = (await create(ToolwrightModule.forRoot())).get(ToolwrightService);
  const error = await service.resumeStored('r', []).catch((thrown: unknown) => thrown);
  expect(ToolwrightError.is(error) && error.message).toContain('2 mistakes');
  expect((error as Error).message).toContain('a run needs a provider and a model');
  expect((error as Error).message).toContain('there is no store');
  await expect(service.run([])).rejects.toThrow('1 mistake');
});
