import { afterEach, expect, test } from '@jest/globals';
import { type Answer, Conversations, defineTool } from 'toolwright';
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
  const conversations = new Conversations({ store, config });
  opened.push(conversations);
  await conversations.prompt('c1', 'Go');
  const [wait] = (await conversations.idle('c1'))?.pending ?? [];
  return { conversations, store, config, paid, id: wait?.id ?? '' };
}

test.each<[string, 'pay' | 'book', (id: string) => readonly object[], string]>([
  ['a slip of reason', 'pay', (id) => [{ id, approved: false, reson: 'dear' }], 'reson'],
  ['a text for a yes', 'pay', (id) => [{ id, approved: 'false' }], 'neither true nor false'],
  ['a value for an approval', 'pay', (id) => [{ id, value: 1 }], 'an approval is answered by'],
  ['a yes and a no', 'pay', (id) => [true, false].map((approved) => ({ id, approved })), 'answered twice'],
  ['a slip of arguments', 'pay', (id) => [{ id, approved: true, argument: { amount: 1 } }], 'argument'],
  ['edits with a no', 'pay', (id) => [{ id, approved: false, arguments: { amount: 1 } }], 'only a yes'],
  ['a value that is too great', 'book', (id) => [{ id, value: 99 }], 'must be <= 4'],
  ['a value of another type', 'book', (id) => [{ id, value: 'four' }], 'must be integer'],
])('Conversations.answer refuses at once %s, and the turn waits on', async (_, tool, answers, told) => {
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

test('a process without the tools refuses what is wrong in form, and leaves edits to the one that has them', async () => {
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
