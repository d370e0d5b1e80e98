import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Conversation, Conversations, type Message, runToolLoop, ToolRegistry } from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { Agents, HandOffs, type NamedAgent } from 'toolwright/toolbox/agents';
import { Permissions } from 'toolwright/toolbox/permissions';
import { agentOf, calling, payTool, scripted } from './agents.js';

const opened: Conversations[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function deskOf(
  front: NamedAgent['provider'],
  billing: NamedAgent['provider'],
  more: Partial<NamedAgent> = {},
) {
  const agents = new Agents({
    agents: {
      front: agentOf(front, { description: 'Greets', model: 'front-model', systemPrompt: 'Greet.' }),
      billing: agentOf(billing, { description: 'Bills', systemPrompt: 'Bill.', ...more }),
    },
  });
  return new HandOffs({ agents, first: 'front' });
}

async function kept(conversations: Conversations, id: string) {
  const view = await conversations.snapshot(id);
  if (view === undefined) throw new Error(`there is no ${id}`);
  return view;
}

const handOff = (agent: string, note = 'about the invoice') => calling('hand_off', { agent, note });

describe('HandOffs', () => {
  test('the agent that receives a conversation answers this turn and all later ones until it hands back', async () => {
    const front = scripted(
      { content: 'Hello.' },
      handOff('billing'),
      { content: 'Back at the front.' },
      { content: 'Bye.' },
    );
    const billing = scripted(
      { content: 'It is 7.' },
      { content: 'Still 7.' },
      handOff('front', 'they want to leave'),
    );
    const desk = deskOf(front, billing);
    const conversation = new Conversation(desk.configOf([]));
    desk.follow(conversation);
    const said: string[] = [];
    for (const text of ['Hi', 'My invoice?', 'Sure?', 'I want to leave', 'Bye'])
      said.push((await conversation.prompt(text)).content);
    expect(said).toEqual(['Hello.', 'It is 7.', 'Still 7.', 'Back at the front.', 'Bye.']);
    expect(billing.asked[0]).toMatchObject({ model: 'small' });
    expect(billing.asked[0]?.messages).toEqual([
      { role: 'system', content: 'Bill.' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: 'My invoice?' },
      {
        role: 'user',
        content: 'This conversation was handed over to you: about the invoice\nContinue it.',
      },
    ]);
    expect(billing.asked[0]?.tools).toBeUndefined();
    expect(billing.asked[1]?.messages[0]).toEqual({ role: 'system', content: 'Bill.' });
    expect(billing.asked[1]?.tools?.map((tool) => tool.function.name)).toEqual(['hand_off']);
    expect(front.asked[3]).toMatchObject({ model: 'front-model' });
    expect(desk.agentOf(conversation.messages)).toBe('front');
  });

  test('the current agent is read from the history, in another process and with pending calls', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hand-offs-'));
    folders.push(folder);
    const path = join(folder, 'runs.sqlite');
    const { pay, ran } = payTool();
    const open = (front: ReturnType<typeof scripted>, billing: ReturnType<typeof scripted>) => {
      const desk = deskOf(front, billing, { tools: [pay] });
      const store = new SqliteRunStore({ path });
      const conversations = new Conversations({ store, config: ({ messages }) => desk.configOf(messages) });
      opened.push(conversations);
      return { store, conversations };
    };
    const first = open(scripted(handOff('billing')), scripted(calling('pay', { amount: 7 })));
    await first.conversations.prompt('c1', 'Pay my invoice', { owner: 'ann' });
    await first.conversations.idle('c1');
    const { pending } = await kept(first.conversations, 'c1');
    expect(pending).toMatchObject([{ tool: 'pay', path: [{ tool: 'hand_off' }] }]);
    await first.conversations.close();
    first.store.close();

    const second = open(scripted(), scripted({ content: 'Paid 8.' }, { content: 'You are welcome.' }));
    const answers = pending.map(({ id }) => ({ id, approved: true as const, arguments: { amount: 8 } }));
    await second.conversations.answer('c1', answers, { owner: 'ann' });
    await second.conversations.idle('c1');
    expect(ran).toEqual([{ amount: 8 }]);
    await second.conversations.prompt('c1', 'Thanks', { owner: 'ann' });
    await second.conversations.idle('c1');
    const { messages } = await kept(second.conversations, 'c1');
    expect(messages.at(-1)?.content).toBe('You are welcome.');
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant']);
    await second.conversations.close();
    second.store.close();
  });

  test('the policies of the agent and of the conversation apply in all turns of the agent', async () => {
    const { pay, ran } = payTool({ approval: false });
    const billing = scripted(
      ...[1, 2].flatMap((amount) => [calling('pay', { amount }), { content: 'I may not.' }]),
    );
    const desk = deskOf(scripted(handOff('billing')), billing, { tools: [pay], policy: () => false });
    const conversation = new Conversation({ ...desk.configOf([]), policy: () => true });
    desk.follow(conversation);
    for (const text of ['Pay 1', 'Pay 2'])
      expect((await conversation.prompt(text)).content).toBe('I may not.');
    expect(desk.agentOf(conversation.messages)).toBe('billing');
    expect(ran).toEqual([]);
  });

  test('a hand-off that fails, is refused or names an unknown agent changes nothing', async () => {
    const desk = deskOf(scripted(), scripted());
    const asked = (id: string, agent: string): Message => ({
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id,
          type: 'function',
          function: { name: 'hand_off', arguments: JSON.stringify({ agent, note: 'x' }) },
        },
      ],
    });
    const answered = (id: string, isError = false): Message => ({
      role: 'tool',
      tool_call_id: id,
      content: 'x',
      ...(isError ? { isError } : {}),
    });
    expect(desk.agentOf([])).toBe('front');
    expect(desk.agentOf([asked('1', 'billing'), answered('1')])).toBe('billing');
    expect(desk.agentOf([asked('1', 'billing'), answered('1', true)])).toBe('front');
    expect(desk.agentOf([asked('1', 'billing')])).toBe('front');
    expect(desk.agentOf([asked('1', 'constructor'), answered('1')])).toBe('front');
    expect(
      desk.agentOf([asked('1', 'billing'), answered('1'), asked('1', 'front'), answered('1', true)]),
    ).toBe('billing');
    const { systemPrompt: _, ...config } = desk.configOf([]);
    const refused = await runToolLoop(
      {
        ...config,
        provider: scripted(handOff('billing'), { content: 'Then I answer.' }),
        policy: () => ({ allow: false }),
      },
      [{ role: 'user', content: 'Hi' }],
    );
    expect(refused.content).toBe('Then I answer.');
    expect(desk.agentOf(refused.messages)).toBe('front');
  });

  test('an agent whose run fails does not receive the conversation, and the calling run continues', async () => {
    const broken = scripted(() => {
      throw new Error('no model');
    });
    const desk = deskOf(scripted(handOff('billing'), { content: 'I will try myself.' }), broken);
    const { systemPrompt: _, ...config } = desk.configOf([]);
    const run = await runToolLoop(config, [{ role: 'user', content: 'Hi' }]);
    expect(run.content).toBe('I will try myself.');
    expect(desk.agentOf(run.messages)).toBe('front');
  });

  test('omits agents that permissions deny, and throws for invalid options', () => {
    const provider = scripted();
    const agents = new Agents({ agents: { front: agentOf(provider), billing: agentOf(provider) } });
    const permissions = new Permissions({
      mode: 'auto',
      rules: [{ decision: 'deny', tool: 'hand_off', arguments: { agent: 'billing' } }],
    });
    expect(new HandOffs({ agents, first: 'front', permissions }).configOf([]).tools.list()).toEqual([]);
    expect(new HandOffs({ agents, first: 'billing', permissions }).configOf([]).tools.list()).toEqual([
      'hand_off',
    ]);
    expect(() => new HandOffs({ agents, first: 'fron' })).toThrow("there is no agent 'fron'");
    const shared = new Agents({ agents: { front: agentOf(provider, { tools: new ToolRegistry() }) } });
    expect(() => new HandOffs({ agents: shared, first: 'front' })).toThrow('its tools must be a list');
  });
});

describe('Conversations', () => {
  test('pass the messages before the turn to config, and the same messages when the turn continues', async () => {
    const told: (readonly Message[])[] = [];
    const { pay } = payTool();
    const provider = scripted({ content: 'Hello.' }, calling('pay', { amount: 1 }), { content: 'Paid.' });
    const conversations = new Conversations({
      store: new MemoryRunStore(),
      config: ({ messages }) => {
        told.push(messages);
        return { provider, model: 'm', tools: [pay] };
      },
    });
    opened.push(conversations);
    await conversations.prompt('c', 'Hi');
    await conversations.idle('c');
    await conversations.prompt('c', 'Pay');
    await conversations.idle('c');
    const { pending } = await kept(conversations, 'c');
    await conversations.answer(
      'c',
      pending.map(({ id }) => ({ id, approved: true as const, arguments: { amount: 2 } })),
    );
    await conversations.idle('c');
    const before = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello.' },
    ];
    expect(told[0]).toEqual([]);
    expect(told.length).toBeGreaterThan(2);
    for (const messages of told.slice(1)) expect(messages).toEqual(before);
  });
});
