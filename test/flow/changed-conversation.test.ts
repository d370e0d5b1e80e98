import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Conversation, type ConversationEvent, defineTool, type Message, TaskQueue } from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });
const drop = defineTool({
  name: 'drop',
  description: 'Drops',
  parameters: {},
  approval: true,
  execute: () => 'dropped',
});
const callOf = (name: string): ScriptedStep => ({ toolCalls: [{ id: 'c1', name, arguments: {} }] });
const failing: ScriptedStep = () => {
  throw new Error('down');
};
const notReady = { name: 'ConversationNotReady', code: 526 };

function setup(steps: readonly ScriptedStep[], more: object = {}) {
  const provider = new ScriptedProvider(steps);
  const config = { provider, model: 'm', tools: [look, drop], providerRetries: 0, ...more };
  return { provider, config, conversation: new Conversation(config) };
}

describe('Conversation.continue', () => {
  test('continues after a failed turn, without a new message', async () => {
    const { conversation, provider } = setup([callOf('look'), failing, { content: 'Done.' }]);
    const events: ConversationEvent[] = [];
    expect(await conversation.prompt('Go')).toMatchObject({ status: 'failed' });
    conversation.subscribe((event) => events.push(event));
    expect(await conversation.continue()).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(provider.requests[2]?.messages).toEqual(provider.requests[1]?.messages);
    expect(events[0]).toEqual({ type: 'turn-start', turn: { number: 2, origin: { kind: 'continue' } } });
  });

  test('continues after a turn that was aborted during a call, which has its answer', async () => {
    const stop = new AbortController();
    const wait = defineTool({
      name: 'wait',
      description: 'Waits',
      parameters: {},
      execute: () => {
        stop.abort();
        return new Promise(() => {});
      },
    });
    const { conversation, provider } = setup([callOf('wait'), { content: 'Then not.' }], { tools: [wait] });
    expect(await conversation.prompt('Go', { signal: stop.signal })).toMatchObject({ status: 'aborted' });
    expect(await conversation.continue()).toMatchObject({ status: 'completed' });
    expect(historyFaults(provider.requests[1]?.messages ?? [])).toEqual([]);
    expect(conversation.messages.at(-1)?.content).toBe('Then not.');
  });

  test('continues a conversation restored after a failed turn, in the scope of its config', async () => {
    const { conversation, config } = setup([failing, { content: 'Done.' }], {
      stateSecret: 'secret-of-this-test that has at least thirty-two characters',
    });
    await conversation.prompt('Go', { scope: { owner: 'u1' } });
    const snapshot = JSON.parse(JSON.stringify(conversation));
    const restored = Conversation.restore({ ...config, scope: { owner: 'u1' } }, snapshot);
    expect(await restored.continue()).toMatchObject({ status: 'completed', content: 'Done.' });
  });

  test('a snapshot taken while it runs continues when restored', async () => {
    const { promise, resolve } = Promise.withResolvers<{ content: string }>();
    const { conversation, config } = setup([failing, () => promise]);
    await conversation.prompt('Go');
    const continued = conversation.continue();
    const snapshot = JSON.parse(JSON.stringify(conversation));
    const provider = new ScriptedProvider([{ content: 'Restored.' }]);
    const restored = Conversation.restore({ ...config, provider }, snapshot);
    await restored.idle();
    expect(restored.messages.map(({ content }) => content)).toEqual(['Go', 'Restored.']);
    resolve({ content: 'Done.' });
    await continued;
    expect(conversation.messages.map(({ content }) => content)).toEqual(['Go', 'Done.']);
  });

  test('is refused if there is nothing to continue', async () => {
    const { conversation } = setup([{ content: 'Done.' }]);
    await expect(conversation.continue()).rejects.toMatchObject({
      ...notReady,
      message: expect.stringContaining('there are no messages yet'),
    });
    await conversation.prompt('Go');
    await expect(conversation.continue()).rejects.toThrow(
      'the last message is the model’s answer: use `prompt`',
    );
    expect(conversation.toJSON().turns).toBe(1);
  });

  test('is refused while a turn runs or is suspended', async () => {
    const { conversation } = setup([callOf('drop'), { content: 'Done.' }]);
    const prompted = conversation.prompt('Go');
    await expect(conversation.continue()).rejects.toThrow('a turn is running');
    await prompted;
    await expect(conversation.continue()).rejects.toThrow('a turn waits for answers');
    const answers = conversation.pending.map(({ id }) => ({ id, approved: true }));
    expect(await conversation.answer(answers)).toMatchObject({ status: 'completed' });
  });

  test('validates its options, and rejects on a closed conversation', async () => {
    const { conversation } = setup([failing]);
    await expect(conversation.continue({ signals: 1 } as never)).rejects.toMatchObject({ code: 521 });
    conversation.close();
    await expect(conversation.continue()).rejects.toMatchObject({ name: 'RunAborted' });
  });
});

describe('Conversation.update', () => {
  test('changes model, tools, system prompt and provider from the next turn on', async () => {
    const { conversation, provider } = setup([{ content: '1' }, { content: '2' }], { systemPrompt: 'Old.' });
    await conversation.prompt('a');
    conversation.update({ model: 'n', tools: [look], systemPrompt: 'New.' });
    await conversation.prompt('b');
    expect(provider.requests[1]).toMatchObject({ model: 'n' });
    expect(provider.requests[1]?.messages[0]).toEqual({ role: 'system', content: 'New.' });
    expect(provider.requests.map(({ tools }) => tools?.length)).toEqual([2, 1]);
    const other = new ScriptedProvider([{ content: '3' }]);
    conversation.update({ provider: other, systemPrompt: '', model: undefined });
    await conversation.prompt('c');
    expect(other.requests[0]).toMatchObject({ model: 'n' });
    expect(other.requests[0]?.messages.map(({ role }) => role)).not.toContain('system');
    expect(conversation.messages).toHaveLength(6);
  });

  test('does not change snapshots: restore uses the config that it receives', async () => {
    const { conversation, config } = setup([{ content: '1' }, { content: '2' }]);
    conversation.update({ model: 'n' });
    await conversation.prompt('a');
    const restored = Conversation.restore(config, JSON.parse(JSON.stringify(conversation)));
    expect(restored.messages).toEqual(conversation.messages);
    await restored.prompt('b');
    expect(config.provider.requests.map(({ model }) => model)).toEqual(['n', 'm']);
  });

  test('throws while a turn runs, and changes nothing', async () => {
    const { conversation, provider } = setup([{ content: '1' }, { content: '2' }]);
    const prompted = conversation.prompt('a');
    expect(() => conversation.update({ model: 'n' })).toThrow(expect.objectContaining(notReady));
    await prompted;
    await conversation.prompt('b');
    expect(provider.requests.map(({ model }) => model)).toEqual(['m', 'm']);
  });

  test('a suspended run keeps its model and prompt, and uses the new tools', async () => {
    const { conversation, provider } = setup([callOf('drop'), { content: '1' }, { content: '2' }], {
      systemPrompt: 'Old.',
    });
    await conversation.prompt('a');
    const { execute: _, ...declared } = drop;
    conversation.update({
      model: 'n',
      systemPrompt: 'New.',
      tools: [{ ...declared, execute: () => 'anew' }],
    });
    await conversation.answer(conversation.pending.map(({ id }) => ({ id, approved: true })));
    expect(provider.requests[1]).toMatchObject({ model: 'm' });
    expect(provider.requests[1]?.messages[0]?.content).toBe('Old.');
    expect(provider.requests[1]?.messages.at(-1)?.content).toBe('anew');
    await conversation.prompt('b');
    expect(provider.requests[2]).toMatchObject({ model: 'n' });
    expect(provider.requests[2]?.messages[0]?.content).toBe('New.');
    expect(conversation.messages.every(({ role }) => role !== 'system')).toBe(true);
  });

  test('keeps the work that earlier tools started', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const slow = defineTool({
      name: 'slow',
      description: 'Slow',
      parameters: {},
      execute: (_args, context) => context.background(() => promise, 'Started'),
    });
    const { conversation } = setup([callOf('slow'), { content: '1' }, { content: '2' }], { tools: [slow] });
    await conversation.prompt('a');
    conversation.update({ tools: [look] });
    expect(conversation.tasks).toHaveLength(1);
    resolve('of slow');
    await conversation.idle({ tasks: true });
    expect(conversation.messages.at(-2)?.content).toBe('[System: async:slow] of slow');
    expect(conversation.tasks).toEqual([]);
  });

  test('throws for invalid changes', () => {
    const { conversation } = setup([]);
    for (const changes of [
      { modell: 'n' },
      { model: '' },
      { tools: 7 },
      { tasks: new TaskQueue() },
      undefined,
    ])
      expect(() => conversation.update(changes as never)).toThrow(expect.objectContaining({ code: 521 }));
    expect(() => conversation.update({ tools: [{}] as never })).toThrow(
      expect.objectContaining({ code: 502 }),
    );
  });
});

describe('Conversation.editHistory', () => {
  const edited: readonly Message[] = [
    { role: 'user', content: 'edited' },
    { role: 'assistant', content: 'yes' },
  ];

  test('replaces, removes and inserts messages for the next turn and for snapshots', async () => {
    const { conversation, provider, config } = setup([callOf('look'), { content: '1' }, { content: '2' }]);
    await conversation.prompt('a');
    conversation.editHistory((messages) => [...edited, ...messages.filter(({ role }) => role === 'user')]);
    expect(Object.isFrozen(conversation.messages)).toBe(true);
    const snapshot = JSON.parse(JSON.stringify(conversation));
    expect(Conversation.restore(config, snapshot).messages).toEqual(conversation.messages);
    await conversation.prompt('b');
    expect(provider.requests[2]?.messages.map(({ content }) => content)).toEqual(['edited', 'yes', 'a', 'b']);
  });

  test('removes a call together with its answer, and refuses to remove only one of them', async () => {
    const { conversation } = setup([callOf('look'), { content: '1' }]);
    await conversation.prompt('a');
    const before = conversation.messages;
    for (const role of ['tool', 'assistant'])
      expect(() =>
        conversation.editHistory((messages) => messages.filter((message) => message.role !== role)),
      ).toThrow(expect.objectContaining({ code: 521, message: expect.stringContaining('messages[1]') }));
    expect(conversation.messages).toBe(before);
    conversation.editHistory((messages) => messages.toSpliced(1, 2));
    expect(conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  test('throws for an invalid history, and changes nothing if the function throws or is asynchronous', async () => {
    const { conversation } = setup([{ content: '1' }]);
    await conversation.prompt('a');
    const before = conversation.messages;
    for (const change of [() => undefined, async () => [], () => [{ role: 'bot' }], 7])
      expect(() => conversation.editHistory(change as never)).toThrow(expect.objectContaining({ code: 521 }));
    const thrown = new Error('mine');
    expect(() =>
      conversation.editHistory((messages) => {
        messages.length = 0;
        throw thrown;
      }),
    ).toThrow(thrown);
    expect(conversation.messages).toBe(before);
  });

  test('throws while a turn runs or is suspended', async () => {
    const { conversation } = setup([callOf('drop'), { content: 'Done.' }]);
    const prompted = conversation.prompt('Go');
    expect(() => conversation.editHistory(() => [])).toThrow(expect.objectContaining(notReady));
    await prompted;
    expect(() => conversation.editHistory(() => [])).toThrow('a turn waits for answers');
    conversation.abort();
    await conversation.idle();
    conversation.editHistory(() => []);
    expect(conversation.messages).toEqual([]);
  });

  test('leaves a valid history, whichever messages are removed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }), async (keep) => {
        const { conversation } = setup([callOf('look'), { content: '1' }, callOf('look'), { content: '2' }]);
        await conversation.prompt('a');
        await conversation.prompt('b');
        const before = conversation.messages;
        const wanted = before.filter((_, index) => keep[index]);
        const isValid = historyFaults(wanted).length === 0;
        try {
          conversation.editHistory(() => wanted);
        } catch (error) {
          expect(error).toMatchObject({ code: 521 });
        }
        expect(conversation.messages).toEqual(isValid ? wanted : before);
      }),
      { numRuns: 60 },
    );
  });
});
