import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { type Answer, Conversations, cancelRun, compensateRun, defineTool } from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const opened: Conversations[] = [];

afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

/** A conversation that waits for an answer to a call of `pay` or `book`. */
async function waiting(tool: 'pay' | 'book') {
  const paid: unknown[] = [];
  const parameters = { type: 'object', properties: { amount: { type: 'integer' } } } as const;
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    parameters,
    approval: true,
    execute: ({ amount }) => `paid ${paid.push(amount)}`,
  });
  const book = defineTool({
    name: 'book',
    description: 'Books',
    parameters,
    execute: async (_, context) => {
      const schema = { type: 'integer', minimum: 1, maximum: 4 } as const;
      return `booked ${paid.push(await context.ask({ message: 'How many?', schema }))}`;
    },
  });
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: tool, arguments: { amount: 1000 } }] },
    { content: 'done' },
  ]);
  const store = new MemoryRunStore();
  const config = { provider, model: 'm', tools: [pay, book] };
  const conversations = new Conversations({ store, config, pollMs: 20 });
  opened.push(conversations);
  await conversations.prompt('c1', 'Go');
  const [wait] = (await conversations.idle('c1'))?.pending ?? [];
  return { conversations, store, config, paid, id: wait?.id ?? '' };
}

test.each<[string, 'pay' | 'book', (id: string) => readonly object[], string]>([
  ['a misspelt reason', 'pay', (id) => [{ id, approved: false, reson: 'dear' }], 'reson'],
  ['text as an approval', 'pay', (id) => [{ id, approved: 'false' }], 'neither true nor false'],
  ['a value for an approval', 'pay', (id) => [{ id, value: 1 }], 'the answer to an approval must be'],
  [
    'approval and refusal in one request',
    'pay',
    (id) => [true, false].map((approved) => ({ id, approved })),
    'answered twice',
  ],
  ['misspelt arguments', 'pay', (id) => [{ id, approved: true, argument: { amount: 1 } }], 'argument'],
  [
    'edits in a refusal',
    'pay',
    (id) => [{ id, approved: false, arguments: { amount: 1 } }],
    'only an approval can change',
  ],
  ['no answer', 'pay', () => [], 'No answer was given; it is waiting for'],
  ['a value above the maximum', 'book', (id) => [{ id, value: 99 }], 'must be <= 4'],
  ['a value of another type', 'book', (id) => [{ id, value: 'four' }], 'must be integer'],
])('Conversations.answer rejects %s at once, and the turn still waits', async (_, tool, answers, told) => {
  const { conversations, paid, id } = await waiting(tool);
  await expect(conversations.answer('c1', answers(id) as readonly Answer[])).rejects.toMatchObject({
    code: 514,
    message: expect.stringContaining(told),
  });
  expect(await conversations.snapshot('c1')).toMatchObject({ status: 'suspended', inbox: [] });
  await conversations.answer('c1', [tool === 'pay' ? { id, approved: true } : { id, value: 3 }]);
  expect(await conversations.idle('c1')).toMatchObject({ status: 'idle' });
  expect(paid).toEqual([tool === 'pay' ? 1000 : 3]);
});

test('a process without the tools rejects malformed answers, and leaves edits to the turn’s process', async () => {
  const { conversations, store, config, paid, id } = await waiting('pay');
  const { tools: _, ...bare } = config;
  const front = new Conversations({ store, config: bare, takesTurns: false });
  opened.push(front);
  const reson = [{ id, approved: false, reson: 'dear' }];
  await expect(front.answer('c1', reson)).rejects.toMatchObject({ code: 514 });
  await front.answer('c1', [{ id, approved: true, arguments: { amount: 1 } }]);
  await conversations.idle('c1');
  expect(paid).toEqual([1]);
});

/** A store that counts the events it returned, and how often a conversation was released. */
function counted(store: MemoryRunStore) {
  const counts = { events: 0, letGo: 0 };
  const watched = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value === 'object' && value !== null) return watched(value);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const given: unknown = value.apply(target, args);
          if (name === 'events') counts.events += (given as readonly unknown[]).length;
          if (name === 'letGo') counts.letGo += 1;
          return given;
        };
      },
    });
  return { counts, store: watched(store) };
}

test('taking a suspended conversation reads only the last event of its turn', async () => {
  const parameters = { type: 'object', properties: {} } as const;
  const work = defineTool({
    name: 'work',
    description: 'Works, and asks',
    parameters,
    execute: async (_, context) => {
      for (let done = 0; done < 1200; done += 1) context.progress({ done } as never);
      return `booked ${await context.ask({ message: 'How many?', schema: { type: 'integer' } })}`;
    },
  });
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'work', arguments: {} }] },
    { content: 'done' },
    { content: 'later' },
  ]);
  const store = new MemoryRunStore();
  const config = { provider, model: 'm', tools: [work] };
  const first = new Conversations({ store, config });
  await first.prompt('c1', 'Go');
  const [wait] = (await first.idle('c1'))?.pending ?? [];
  await first.close();
  expect((await store.conversations.read('c1'))?.lastEvent).toBeGreaterThan(1200);

  const { counts, store: own } = counted(store);
  const second = new Conversations({ store: own, config });
  const front = new Conversations({ store, config, takesTurns: false });
  opened.push(second, front);
  await front.prompt('c1', 'Later');
  while (counts.letGo === 0) await pause(2);
  await front.answer('c1', [{ id: wait?.id ?? '', value: 3 }]);
  expect((await front.idle('c1'))?.messages.at(-1)).toMatchObject({ content: 'later' });
  // One event each time the conversation is taken.
  expect(counts.events).toBeLessThan(10);
});

test.each([
  ['cancelRun', (store: MemoryRunStore) => cancelRun({ store, runId: 'c1.1', reason: 'the shop is closed' })],
  ['compensateRun', (store: MemoryRunStore) => compensateRun(store, 'c1.1', { tools: [] })],
] as const)('%s of a suspended turn also ends the turn in its conversation', async (_, end) => {
  const { conversations, store, paid } = await waiting('pay');
  const events: string[] = [];
  const telling = (async () => {
    for await (const { event } of conversations.events('c1')) {
      events.push(JSON.stringify(event));
      if (event.type === 'turn-end') return;
    }
  })();
  await end(store);
  await telling;
  expect(await conversations.idle('c1')).toMatchObject({
    status: 'idle',
    pending: [],
    messages: expect.arrayContaining([expect.objectContaining({ role: 'user', content: 'Go' })]),
  });
  expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({
    type: 'turn-end',
    error: { message: expect.stringMatching(/the shop is closed|being undone/) },
  });
  await conversations.prompt('c1', 'And now?');
  expect(await conversations.idle('c1')).toMatchObject({ status: 'idle' });
  expect(paid).toEqual([]);
});

test('an approval that was not used before cancelRun is reported as late', async () => {
  const { conversations, store, config, paid, id } = await waiting('pay');
  await conversations.close();
  const front = new Conversations({ store, config, takesTurns: false });
  await front.answer('c1', [{ id, approved: true }], { key: 'yes' });
  await cancelRun({ store, runId: 'c1.1' });
  const next = new Conversations({ store, config });
  opened.push(front, next);
  const view = await next.idle('c1');
  expect(view?.messages.at(-1)).toMatchObject({
    content: "The run was aborted. The tool 'pay' was not run.",
  });
  const told: unknown[] = [];
  for await (const { event } of next.events('c1')) {
    if (/answers-|turn-end/.test(String(event.type))) told.push([event.type, event.key, event.isLate]);
    if (event.type === 'turn-end') break;
  }
  expect(told).toEqual([
    ['answers-refused', 'yes', true],
    ['turn-end', undefined, undefined],
  ]);
  expect(paid).toEqual([]);
});

/** A conversation that waits for an approval of `pay`, after `reserve` in the same reply. */
async function reserved() {
  const undone: unknown[] = [];
  const reserve = defineTool({
    name: 'reserve',
    description: 'Reserves',
    execute: () => 'reserved table 4',
    compensate: () => `freed ${undone.push('table 4')} table`,
  });
  const pay = defineTool({ name: 'pay', description: 'Pays', approval: true, execute: () => 'paid' });
  const toolCalls = ['reserve', 'pay'].map((name) => ({ name, arguments: {} }));
  const provider = new ScriptedProvider([{ toolCalls }, { content: 'done' }]);
  const store = new MemoryRunStore();
  const tools = [reserve, pay];
  const config = { provider, model: 'm', tools };
  const conversations = new Conversations({ store, config, pollMs: 20 });
  opened.push(conversations);
  await conversations.prompt('c1', 'Go');
  await conversations.idle('c1');
  return { conversations, store, tools, undone };
}

test('compensateRun of a suspended turn adds its effects, and that they were undone, to the conversation', async () => {
  const { conversations, store, tools, undone } = await reserved();
  await compensateRun(store, 'c1.1', { tools });
  expect(undone).toEqual(['table 4']);
  const view = await conversations.idle('c1');
  expect(view?.messages.map(({ content }) => content)).toEqual([
    'Go',
    '',
    'reserved table 4\n\nThis was undone later: freed 1 table',
    "The run was aborted. The tool 'pay' was not run.",
  ]);
});

test('compensateRun of a completed turn does not claim its conversation', async () => {
  const { conversations, store, tools } = await reserved();
  await cancelRun({ store, runId: 'c1.1' });
  await conversations.idle('c1');
  await conversations.close();
  const lease = { conversationId: 'c1', claim: 'another turn', leaseMs: 60_000 };
  expect(store.conversations.hold(lease)).toMatchObject({ status: 'held' });
  const hold = store.conversations.hold.bind(store.conversations);
  let asked = 0;
  store.conversations.hold = (wanted) => {
    asked += 1;
    return hold(wanted);
  };
  expect(await compensateRun(store, 'c1.1', { tools })).toMatchObject([{ status: 'compensated' }]);
  expect(asked).toBe(0);
});
