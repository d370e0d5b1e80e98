import { expect, test } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { InvalidOptionsError, Tool, ToolwrightError } from 'toolwright';
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

const OPTIONS: readonly [string, unknown, string][] = [
  ['tools that are a string', { tools: 'nope' }, "tools is 'nope'"],
  ['data that is an object', { data: {} }, 'data is {}'],
  ['a time with a unit', { shutdownTimeoutMs: '10s' }, "shutdownTimeoutMs is '10s'"],
  ['a negative time', { shutdownTimeoutMs: -5 }, 'shutdownTimeoutMs is -5'],
  ['a misspelt model', { modle: 'm' }, 'modle is not an option of ToolwrightModule (did you mean `model`?)'],
  ['an invalid provider', { provider: {} }, 'provider is {}'],
  ['a misspelt policy', { polcy: () => false }, 'did you mean `policy`?'],
  ['an undefined policy', { policy: undefined }, 'policy is undefined'],
  ['an undefined owner', { owner: undefined }, 'owner is undefined'],
  ['a visible that is a list', { visible: ['a'] }, "visible is ['a']"],
  ['mayAnswer without owner', { mayAnswer: () => true }, 'mayAnswer needs owner'],
  ['exposeErrors that is a string', { exposeErrors: 'yes' }, "exposeErrors is 'yes'"],
  ['a signal', { signal: new AbortController().signal }, 'signal in the options of a run'],
  ['the config of a run', { config: { modle: 'm' } }, 'forRoot({ provider, model })'],
  ['null', null, 'its options are null'],
  ['checkpoint without a store', { checkpoint: 'step' }, 'checkpoint stores the steps of runs'],
  ['a lease without a store', { leaseMs: 10_000 }, 'leaseMs is for stored runs and conversations'],
];

test.each(OPTIONS)('ToolwrightModule.forRoot refuses %s', async (_, options, sentence) => {
  for (const root of [
    ToolwrightModule.forRoot(options as never),
    ToolwrightModule.forRootAsync({ useFactory: async () => options as never }),
  ])
    await expectRefusal(() => [root], { name: 'InvalidOptions', sentence });
});

test('ToolwrightModule.forRoot reports all invalid options together', async () => {
  const options = { modle: 'm', strict: 'yes', shutdownTimeoutMs: Number.NaN };
  const error = await expectRefusal(() => [ToolwrightModule.forRoot(options as never)], {
    name: 'InvalidOptions',
    sentence: '3 mistakes',
  });
  expect(error).toBeInstanceOf(InvalidOptionsError);
});

test.each<[string, () => Imports, Refusal]>([
  [
    'a factory that returns nothing',
    () => [ToolwrightModule.forRootAsync({ useFactory: () => undefined as never })],
    { name: 'InvalidOptions', sentence: 'its options are undefined' },
  ],
  [
    'forRootAsync without a source of options',
    () => [ToolwrightModule.forRootAsync({ inject: [] })],
    { name: 'InvalidOptions', sentence: 'exactly one of useFactory, useClass and useExisting' },
  ],
  [
    'two sources of options',
    () => [ToolwrightModule.forRootAsync({ useFactory: () => ({}), useClass: Settings })],
    { name: 'InvalidOptions', sentence: 'exactly one of useFactory, useClass and useExisting' },
  ],
  [
    'options of forRoot in forRootAsync',
    () => [ToolwrightModule.forRootAsync({ useFactory: () => ({}), model: 'm' } as never)],
    { name: 'InvalidOptions', sentence: 'model is not an option of ToolwrightModule.forRootAsync' },
  ],
  [
    'a class without createToolwrightOptions',
    () => [ToolwrightModule.forRootAsync({ useClass: NoSettings as never })],
    { name: 'InvalidOptions', sentence: 'NoSettings has no method createToolwrightOptions' },
  ],
  [
    'an undefined feature',
    () => [ToolwrightModule.forRoot(), ToolwrightModule.forFeature(undefined as never)],
    { name: 'InvalidToolSignature', sentence: 'it received undefined instead of a list of tools' },
  ],
  [
    'a feature that is a class',
    () => [ToolwrightModule.forRoot(), ToolwrightModule.forFeature(Shop as never)],
    { name: 'InvalidToolSignature', sentence: 'it received a function instead of a list of tools' },
  ],
  [
    'a feature without forRoot',
    () => [ToolwrightModule.forFeature([Shop])],
    { name: 'InvalidToolSignature', sentence: 'the application has no ToolwrightModule.forRoot' },
  ],
])('ToolwrightModule refuses %s', async (_, imports, refusal) => {
  await expectRefusal(imports, refusal);
});

type Imports = Parameters<typeof create>;

interface Refusal {
  readonly name: string;
  readonly sentence: string;
}

async function expectRefusal(imports: () => Imports, { name, sentence }: Refusal): Promise<unknown> {
  const created = (async () => create(...imports()))();
  const error = await created.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name, message: expect.stringContaining(sentence) });
  expect((error as Error).message).toContain('Write instead:');
  return error;
}

test('valid options are accepted, wherever they come from', async () => {
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

test('resuming a stored run without a provider and a store reports both', async () => {
  const service = (await create(ToolwrightModule.forRoot())).get(ToolwrightService);
  const error = await service.resumeStored('r', []).catch((thrown: unknown) => thrown);
  expect(ToolwrightError.is(error) && error.message).toContain('2 mistakes');
  expect(error).toMatchObject({
    code: 521,
    faults: [
      { option: 'provider', problem: 'the run has no provider or no model' },
      { option: 'store', problem: expect.stringContaining('there is no store') },
    ],
  });
  const faults = [{ option: 'model' }];
  await expect(service.run([], { config: { provider } })).rejects.toMatchObject({ code: 521, faults });
  expect(() => service.conversations).toThrow(
    expect.objectContaining({ code: 521, faults: [expect.objectContaining({ option: 'store' })] }),
  );
  const request = { method: 'GET', headers: {}, url: '/' };
  await expect(service.chat(request)).rejects.toMatchObject({ code: 521, faults: [{ option: 'owner' }] });
});

const provider = { chat: async () => ({ content: 'Hi', toolCalls: [], finishReason: 'stop' as const }) };
const hello = [{ role: 'user', content: 'Hi' }] as const;

test.each<[string, unknown, string]>([
  ['null instead of an object', null, 'a run of ToolwrightService needs an object, not null'],
  ['a typo in config', { config: { provider, modle: 'm' } }, 'did you mean `config.model`?'],
  ['an invalid signal in config', { config: { signal: {} } }, 'config.signal is {}'],
  ['an invalid signal', { signal: 5 }, 'signal is 5'],
  ['a typo in the scope', { chanel: 'web' }, 'did you mean `channel`?'],
  ['an option of the loop outside of config', { maxIterations: 3 }, 'config: { maxIterations: … }'],
])('ToolwrightService refuses run options with %s before it calls a model', async (_, options, hint) => {
  const service = (await create(ToolwrightModule.forRoot())).get(ToolwrightService);
  const given = options as never;
  for (const run of [
    async () => service.run(hello, given),
    async () => service.stream(hello, given).result,
    async () => service.resume({} as never, [], given),
    async () => service.streamResumed({} as never, [], given).result,
    async () => service.resumeStored('r', [], given),
  ]) {
    const error = await run().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'InvalidOptions', message: expect.stringContaining(hint) });
  }
});
