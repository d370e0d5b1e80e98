import { afterEach, describe, expect, test } from '@jest/globals';
import { Conversations, type ConversationsOptions, defineTool } from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const opened: Conversations[] = [];

afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

const TOOL = defineTool({
  name: 'place',
  description: 'Places it',
  parameters: { type: 'object', properties: {} },
  approval: true,
  execute: () => 'placed',
});

function open(options: Partial<ConversationsOptions> = {}): Conversations {
  const store = new MemoryRunStore();
  const conversations = new Conversations({ store, config: configOf(), ...options });
  opened.push(conversations);
  return conversations;
}

function configOf() {
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'place', arguments: {} }] },
    { content: 'Hi.' },
  ]);
  return { provider, model: 'm', tools: [TOOL] };
}

/** Throws the given number of times, until `isWell`. `again` resolves on the third call. */
function failing<Given>(times: number, given: () => Given) {
  const again = Promise.withResolvers<void>();
  const state = { asked: 0, again: again.promise, isWell: false };
  const ask = async () => {
    state.asked += 1;
    if (state.asked === 3) again.resolve();
    if (state.asked > times || state.isWell) return given();
    throw new Error('no such user');
  };
  return { state, ask };
}

async function endOf(conversations: Conversations, number: number) {
  for await (const { event } of conversations.events('c1'))
    if (event.type === 'turn-end' && (event.turn as { number?: number }).number === number) return event;
  throw new Error('The events have ended.');
}

const GIVERS = ['scope', 'config'] as const;

describe('a turn whose scope or config throws', () => {
  test.each(GIVERS)('is ended by an abort even while %s fails, and the next turn runs', async (name) => {
    const { state, ask } = failing(Number.POSITIVE_INFINITY, () => (name === 'scope' ? {} : configOf()));
    const conversations = open({ [name]: ask });
    await conversations.prompt('c1', 'Hello');
    await state.again;
    expect(await conversations.abort('c1')).toBe(true);
    expect(await endOf(conversations, 1)).toMatchObject({ status: 'aborted', error: { name: 'RunAborted' } });
    expect((await conversations.idle('c1'))?.messages).toMatchObject([{ role: 'user', content: 'Hello' }]);
    state.isWell = true;
    await conversations.prompt('c1', 'place it');
    expect(await conversations.idle('c1')).toMatchObject({ status: 'suspended', turns: 2 });
  });

  test('is ended by an abort even if scope never settles', async () => {
    const asked = Promise.withResolvers<void>();
    const conversations = open({
      scope: ({ conversationId }) => {
        asked.resolve();
        return conversationId === 'c1' ? new Promise<never>(() => {}) : {};
      },
    });
    await conversations.prompt('c1', 'Hello');
    await asked.promise;
    await conversations.abort('c1');
    expect(await endOf(conversations, 1)).toMatchObject({ status: 'aborted' });
  });

  test.each(GIVERS)('continues once %s succeeds', async (name) => {
    const { state, ask } = failing(2, () => (name === 'scope' ? {} : configOf()));
    const conversations = open({ [name]: ask });
    await conversations.prompt('c1', 'place it');
    expect(await conversations.idle('c1')).toMatchObject({
      status: 'suspended',
      pending: [{ tool: 'place' }],
    });
    expect(state.asked).toBeGreaterThan(2);
  });

  test.each(GIVERS)('fails after the lease has passed, with an event that names %s', async (name) => {
    const { state, ask } = failing(Number.POSITIVE_INFINITY, () => (name === 'scope' ? {} : configOf()));
    const conversations = open({ [name]: ask, leaseMs: 300 });
    await conversations.prompt('c1', 'Hello');
    const end = await endOf(conversations, 1);
    expect(end).toMatchObject({ status: 'failed' });
    expect((end.error as { message: string }).message).toMatch(
      new RegExp(
        `\`${name}\` of Conversations failed \\d+ times? within 300 ms; the last error: no such user`,
      ),
    );
    const view = await conversations.idle('c1');
    expect(view).toMatchObject({ status: 'idle', messages: [{ role: 'user', content: 'Hello' }] });
    state.isWell = true;
    await conversations.prompt('c1', 'place it');
    expect(await conversations.idle('c1')).toMatchObject({ status: 'suspended', turns: 2 });
  });

  test.each(['aborted', 'failed'] as const)(
    'and that waits for answers is %s with a valid history and an ended run',
    async (status) => {
      const store = new MemoryRunStore();
      const { state, ask } = failing(Number.POSITIVE_INFINITY, configOf);
      state.isWell = true;
      const conversations = open({ store, config: ask, leaseMs: status === 'failed' ? 300 : 30_000 });
      await conversations.prompt('c1', 'place it');
      const view = await conversations.idle('c1');
      const answers = (view?.pending ?? []).map(({ id }) => ({ id, approved: true }));
      state.isWell = false;
      if (status === 'failed') await conversations.answer('c1', answers);
      else await conversations.abort('c1');
      expect(await endOf(conversations, 1)).toMatchObject({ status });
      const after = await conversations.idle('c1');
      expect(after).toMatchObject({ status: 'idle', inbox: [], pending: [] });
      expect(after?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
      expect(historyFaults(after?.messages ?? [])).toEqual([]);
      expect(await store.read('c1.1')).toMatchObject({ status: 'ended' });
    },
  );

  test('is left to another process if this one closes', async () => {
    const store = new MemoryRunStore();
    const { state, ask } = failing(Number.POSITIVE_INFINITY, () => ({}));
    const first = open({ store, scope: ask });
    await first.prompt('c1', 'place it');
    await state.again;
    await first.close();
    expect(await first.snapshot('c1')).toMatchObject({ status: 'running' });
    const second = open({ store });
    expect(await second.idle('c1')).toMatchObject({ status: 'suspended', turns: 1 });
  });
});
