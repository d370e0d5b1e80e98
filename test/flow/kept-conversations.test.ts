import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from '@jest/globals';
import { Conversations, defineTool, type LLMProvider, type LLMRequest } from 'toolwright';
import { SqliteConversationStore } from 'toolwright/satellite';
import { SqliteRunStore } from 'toolwright/stores';

const folder = mkdtempSync(join(tmpdir(), 'stored-conversations-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * A database as this version writes it. Later versions must still read these files: a new format gets a new file.
 */
function fileOf(name: string): string {
  const path = join(folder, `${name}.sqlite`);
  using database = new DatabaseSync(path);
  database.exec(readFileSync(`test/fixtures/${name}.sql`, 'utf8'));
  return path;
}

const OWNER = { tenant: 't1' };

test('Conversations continues a stored conversation: its history, its open turn, its inbox', async () => {
  const requests: LLMRequest[] = [];
  const provider: LLMProvider = {
    itemKey: (model) => `maker/${model}`,
    chat: async (request) => {
      requests.push(structuredClone({ ...request, signal: undefined }) as LLMRequest);
      return { content: `Reply ${requests.length}.`, toolCalls: [], finishReason: 'stop' };
    },
  };
  const schema = { description: 'Does it', parameters: {} };
  const tools = [
    defineTool({ name: 'look', ...schema, execute: () => 'seen again' }),
    defineTool({ name: 'drop', ...schema, approval: true, execute: () => 'dropped' }),
  ];
  const store = new SqliteRunStore({ path: fileOf('stored-conversations') });
  const budget = { conversation: { tokens: 1_000 }, maxOutputTokens: 50, countTokens: () => 5 };
  const conversations = new Conversations({ store, config: { provider, model: 'm', tools, budget } });
  try {
    const view = await conversations.snapshot('kept');
    expect(view).toMatchObject({
      ...{ owner: OWNER, turns: 2, lastEvent: 26 },
      history: [{ number: 1, key: 'first', spent: { tokens: 10, calls: 1, steps: 2 } }],
      pending: [{ callId: 'c3', tool: 'drop', kind: 'approval' }],
      inbox: [{ key: 'third' }, { key: 'done', content: { kind: 'completion', forUser: 'Done' } }],
    });
    const told: string[] = [];
    for await (const { number, event } of conversations.events('kept')) {
      told.push(String(event.type));
      if (number === 26) break;
    }
    expect([told.length, told[0], told.at(-1)]).toEqual([26, 'turn-start', 'turn-suspended']);

    const answers = (view?.pending ?? []).map(({ id }) => ({ id, approved: true }));
    await conversations.answer('kept', answers, { owner: OWNER });
    await conversations.idle('kept');
    const after = await conversations.snapshot('kept');
    expect(after).toMatchObject({ turns: 4, inbox: [] });
    expect(after?.messages.map(({ content }) => content)).toEqual([
      ...['Hi', 'Let me see.', 'seen', 'Seen.'],
      ...['Drop it', 'Let me see.', 'dropped', 'Reply 1.'],
      ...['And then?', 'Reply 2.'],
      ...[expect.stringContaining('It is done.'), 'Reply 3.'],
    ]);
    // The provider items of completed turns and of the open turn are sent back to the provider.
    expect(requests[0]?.messages.filter(({ role }) => role === 'assistant')).toMatchObject([
      { providerItems: { 'maker/m': { signature: 'abc==' } }, tool_calls: [{ id: 'c1' }] },
      { providerItems: { 'maker/m': { signature: 'seen==' } } },
      { tool_calls: [{ id: 'c3', providerItems: { 'maker/m': { of: 'c3' } } }] },
    ]);
  } finally {
    await conversations.close();
    store.close();
  }
});

test('SqliteConversationStore continues a stored conversation', async () => {
  using store = new SqliteConversationStore({
    path: fileOf('stored-satellite'),
    expiresAfterMs: Number.POSITIVE_INFINITY,
  });
  const said = { role: 'user', content: 'And then?' } as const;
  const reply = { role: 'assistant', content: 'Nothing.' } as const;
  expect(await store.load('kept')).toEqual({
    turnId: 't2',
    owner: OWNER,
    messages: [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: 'Hello.',
        reasoning: 'A greeting.',
        providerItems: { 'maker/m': { signature: 'abc==' } },
      },
      { role: 'user', content: 'Look' },
      { role: 'assistant', content: '[[look]]{}' },
    ],
    finishReason: 'stop',
  });
  const next = { id: 't3', after: 't2', messages: [said, reply], finishReason: 'stop' } as const;
  expect(await store.append('kept', next)).toBe(true);
  expect((await store.load('kept'))?.messages.slice(4)).toEqual([said, reply]);
});
