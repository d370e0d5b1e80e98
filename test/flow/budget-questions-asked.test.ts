import { afterEach, describe, expect, test } from '@jest/globals';
import { type Budget, Conversations, defineTool, runToolLoop, ToolRegistry } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { createInspector } from 'toolwright/inspector';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { chatOf, readMessage, said } from '../parts/chat/chat-reader.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const usage = { inputTokens: 50, outputTokens: 50, totalTokens: 100 };
const replies = () =>
  new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'a', name: 'look', arguments: {} }], usage },
    { content: 'Done.', usage },
  ] as never);
const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });
const budget: Budget = { conversation: { steps: 1, whenSpent: 'ask' } };
const ASKED = { tool: 'budget', kind: 'question', arguments: { part: 'steps', least: 1, most: 1 } };

describe('a budget with whenSpent ask', () => {
  test('is a pending question in Conversations, and any process can answer it', async () => {
    const store = new SqliteRunStore({ path: ':memory:' });
    const provider = replies();
    const open = () => {
      const conversations = new Conversations({
        store,
        config: { provider, model: 'gpt-5', tools: [look], budget },
      });
      ends.push(() => conversations.close());
      return conversations;
    };
    const first = open();
    await first.prompt('c1', 'Go');
    const view = await first.idle('c1');
    expect([view?.status, view?.pending]).toMatchObject(['suspended', [ASKED]]);
    await first.close();
    const second = open();
    await second.answer('c1', [{ id: view?.pending[0]?.id ?? '', value: 1 }]);
    const done = await second.idle('c1');
    expect(done?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  test('is a part of the chat message, and the run continues with the answer of the user', async () => {
    const store = new MemoryRunStore();
    const conversations = new Conversations({
      store,
      config: { provider: replies(), model: 'gpt-5', tools: [look], budget },
    });
    ends.push(() => conversations.close());
    const handler = createChatHandler({
      conversations,
      authenticate: ({ headers }) => headers.get('x-user'),
    });
    const chat = chatOf(handler);
    const first = [said('Go')];
    const asked = await readMessage(await chat.post({ id: 'c1', messages: first }));
    expect(asked.violations).toEqual([]);
    const part = asked.message?.parts.find(({ type }) => type === 'tool-budget');
    expect(part).toMatchObject({ state: 'input-available', input: { part: 'steps' } });
    expect(asked.message?.parts).toContainEqual(
      expect.objectContaining({ type: 'data-question', data: expect.objectContaining({ tool: 'budget' }) }),
    );
    const parts = asked.message?.parts.map((shown) =>
      shown === part ? { ...shown, state: 'output-available', output: 1 } : shown,
    );
    const answer = { ...asked.message, parts } as typeof asked.message;
    const done = await readMessage(await chat.post({ id: 'c1', messages: [...first, answer] }), answer);
    expect(done.violations).toEqual([]);
    expect(done.message?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Done.' });
    expect(done.message?.parts.find(({ type }) => type === 'tool-budget')).toMatchObject({
      state: 'output-available',
    });
  });

  test('is listed and answered by the inspector, which records no model call for it', async () => {
    const tools = new ToolRegistry().register(look);
    const inspector = createInspector(tools, {});
    ends.push(() => inspector.close());
    const { url: address } = await inspector.listen();
    const headers = { authorization: `Bearer ${inspector.token}`, 'content-type': 'application/json' };
    const ask = async (path: string, body?: object) => {
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
      const response = await fetch(`${address.replace(/#.*$/, '')}api/${path}`, { ...init, headers });
      return (await response.json()) as {
        runs: { runId: string; status: string; pending: { id: string }[] }[];
      };
    };
    const asking: Budget = { steps: 1, whenSpent: 'ask' };
    const run = await runToolLoop({ provider: replies(), model: 'gpt-5', tools, budget: asking }, [
      { role: 'user', content: 'Go' },
    ]);
    expect(run.status).toBe('suspended');
    const { runs } = await ask('pending');
    expect(runs).toMatchObject([{ pending: [ASKED] }]);
    const [{ runId = '', pending = [] } = {}] = runs;
    await ask('answers', { runId, answers: [{ id: pending[0]?.id, value: 1 }], goesOn: 'here' });
    for (;;) {
      const { runs: all } = await ask('runs');
      if (all.some(({ status }) => status === 'completed')) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect((await ask('pending')).runs).toEqual([]);
  });
});
