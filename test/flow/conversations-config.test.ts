import { afterEach, expect, test } from '@jest/globals';
import {
  Conversations,
  type ConversationsConfig,
  type ConversationsOptions,
  defineTool,
  MemoryJobEngine,
} from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const opened: Conversations[] = [];
const wiped: string[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((conversations) => conversations.close()));
  wiped.length = 0;
});

/** A config whose model calls a tool that a policy should have seen. */
function configWith(extra: object): ConversationsConfig {
  const wipe = defineTool({
    name: 'wipe',
    description: 'Wipes',
    parameters: {},
    execute: () => {
      wiped.push('all');
    },
  });
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'wipe', arguments: {} }] },
    { content: 'Done.' },
  ]);
  return { provider, model: 'm', tools: [wipe], ...extra };
}

function open(config: ConversationsOptions['config']): Conversations {
  const conversations = new Conversations({ store: new MemoryRunStore(), config, pollMs: 20 });
  opened.push(conversations);
  return conversations;
}

const MISTAKES: readonly (readonly [object, string])[] = [
  [{ polcy: () => false }, 'polcy'],
  [{ policy: undefined }, 'policy'],
  [{ budgt: { calls: 0 } }, 'budgt'],
  [{ hoks: [] }, 'hoks'],
  [{ answerWithinMS: 5 }, 'answerWithinMS'],
  [{ maxIteration: 1 }, 'maxIteration'],
  [{ toolTimeoutMs: '5' }, 'toolTimeoutMs'],
  [{ systemPromt: 'Ask first.' }, 'systemPromt'],
  [{ checkpoint: 'suspend' }, 'checkpoint'],
  [{ model: undefined }, 'model'],
];

test.each(MISTAKES)('Conversations rejects a config with %j', (extra, option) => {
  const config = configWith(extra);
  expect(() => open(config)).toThrow(expect.objectContaining({ code: 521, faults: [fault(option)] }));
});

test.each(MISTAKES)(
  'a config function that returns %j ends the turn as failed, and runs nothing',
  async (extra, option) => {
    const config = configWith(extra);
    const conversations = open(() => config);
    await conversations.prompt('c1', 'Go');
    const view = await conversations.idle('c1');
    expect(view?.status).toBe('idle');
    const ends = [];
    for await (const { event } of conversations.events('c1', { upTo: view?.lastEvent ?? 0 }))
      if (event.type === 'turn-end') ends.push(event);
    const error = { code: 521, message: expect.stringContaining(option) };
    expect(ends).toMatchObject([{ status: 'failed', error }]);
    expect(wiped).toEqual([]);
    expect((config.provider as ScriptedProvider).requests).toEqual([]);
  },
);

test('a config function that returns undefined ends the turn, too', async () => {
  const conversations = open(() => undefined as never);
  await conversations.prompt('c1', 'Go');
  expect((await conversations.idle('c1'))?.status).toBe('idle');
});

test.each([
  ['engine', new MemoryJobEngine(), /engine next to config/],
  ['store', new MemoryRunStore(), /store next to config/],
  ['leaseMs', 1000, /leaseMs next to config/],
  ['scope', {}, /scope next to config/],
  ['runId', 'r1', /the id of a run is made of/],
  ['signal', new AbortController().signal, /conversations\.abort/],
  ['messages', [], /conversations\.prompt/],
])('Conversations rejects %s in its config, and names the place to use', (name, value, fix) => {
  expect(() => open(configWith({ [name]: value }))).toThrow(fix);
});

test('job options are rejected if there is no engine', () => {
  const config = configWith({});
  const options = { store: new MemoryRunStore(), config, jobConcurrency: 2, jobTools: [] };
  const faults = [fault('jobTools'), fault('jobConcurrency')];
  expect(() => new Conversations(options)).toThrow(expect.objectContaining({ code: 521, faults }));
});

test('faults of the options and of the config are reported together', () => {
  const options = { store: new MemoryRunStore(), config: configWith({ polcy: 1 }), pollMS: 5 };
  const faults = [fault('pollMS'), fault('polcy')];
  expect(() => new Conversations(options)).toThrow(expect.objectContaining({ faults }));
});

test('a second Conversations with other tools on a store is refused, because it would run the turns of the first', async () => {
  const store = new MemoryRunStore();
  const config = configWith({});
  const first = new Conversations({ store, config });
  opened.push(first, new Conversations({ store, config: { ...config, systemPrompt: 'Be brief.' } }));
  opened.push(new Conversations({ store, config: () => configWith({ tools: [] }) }));
  opened.push(new Conversations({ store, config: configWith({ tools: [] }), takesTurns: false }));
  const other = { store, config: configWith({ tools: [] }) };
  const refused = expect.objectContaining({ code: 521, faults: [fault('store')] });
  expect(() => new Conversations(other)).toThrow(refused);
  const chat = { ...configWith({ tools: [] }), store, authenticate: () => 'ann' };
  expect(() => createChatHandler(chat)).toThrow(refused);
  await Promise.all(opened.splice(0).map((conversations) => conversations.close()));
  opened.push(new Conversations(other));
});

function fault(option: string): unknown {
  return expect.objectContaining({ option });
}

test('a suspended turn whose config function outlasts its lease and throws fails before close returns', async () => {
  const store = new MemoryRunStore();
  const config = { ...configWith({}), policy: () => ({ ask: true }) as const };
  const asking = Promise.withResolvers<void>();
  let isBroken = false;
  const conversations = new Conversations({
    store,
    leaseMs: 1000,
    pollMs: 20,
    config: async () => {
      if (!isBroken) return config;
      asking.resolve();
      await new Promise((resolve) => setTimeout(resolve, 1100));
      throw new Error('The database is down.');
    },
  });
  opened.push(conversations);
  await conversations.prompt('c', 'Wipe all.');
  const [asked] = (await conversations.idle('c'))?.pending ?? [];
  isBroken = true;
  await conversations.answer('c', [{ id: asked?.id ?? '', approved: false }]);
  await asking.promise;
  await conversations.close();
  const { lastEvent } = (await conversations.snapshot('c')) ?? {};
  let ended: object | undefined;
  for await (const { event } of conversations.events('c', { upTo: lastEvent })) ended = event;
  expect(ended).toMatchObject({
    type: 'turn-end',
    status: 'failed',
    error: { message: expect.stringContaining('The database is down.') },
  });
});
