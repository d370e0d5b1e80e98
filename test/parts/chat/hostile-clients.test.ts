import { afterEach, describe, expect, test } from '@jest/globals';
import type { UIMessage } from 'ai';
import {
  agentAsTool,
  Conversations,
  type ConversationsOptions,
  defineTool,
  type LLMProvider,
} from 'toolwright';
import { type ChatHandlerOptions, createChatHandler } from 'toolwright/chat';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore } from 'toolwright/stores';
import { describePostgres } from '../../services/services.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { AgUiUser } from './ag-ui-reader.js';
import { type AskedChat, chatOf, readMessage, said } from './chat-reader.js';

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

/** `call a b` calls a and b; everything else is repeated. */
const provider: LLMProvider = {
  async chat({ messages }) {
    const last = messages.at(-1);
    const text = String(last?.content);
    const names = last?.role === 'user' && text.startsWith('call ') ? text.slice(5).split(' ') : [];
    const toolCalls = names.map((name, index) => ({
      id: `${name}_${index}`,
      name,
      arguments: name === 'agent' ? { task: 'x' } : {},
    }));
    return { content: names.length > 0 ? '' : `heard: ${text}`, toolCalls, finishReason: 'stop' };
  },
};

const OPEN = { type: 'object', properties: {}, additionalProperties: true } as const;

function open(
  authenticate?: ChatHandlerOptions['authenticate'],
  store: ConversationsOptions['store'] = new MemoryRunStore(),
) {
  const ran: unknown[] = [];
  const place = defineTool({
    name: 'place',
    description: 'Places',
    parameters: OPEN,
    approval: true,
    execute: (args: object) => {
      ran.push([Object.getPrototypeOf(args) === Object.prototype, JSON.stringify(args)]);
      return 'placed';
    },
  });
  const survey = defineTool({
    name: 'survey',
    description: 'Asks two things at once',
    execute: async (_args, context) => {
      const ask = (message: string) => context.ask({ message, schema: { type: 'string' } });
      const [colour, city] = await Promise.all([ask('Which colour?'), ask('Which city?')]);
      return `${colour}, ${city}`;
    },
  });
  const locate = defineTool({ name: 'locate', description: 'Locates', execution: 'client' });
  const agent = agentAsTool({
    name: 'agent',
    description: 'Delegates',
    provider,
    model: 'm',
    prompt: () => 'call locate locate place',
    tools: [place, locate],
  });
  const config = { provider, model: 'm', tools: [place, survey, locate, agent] };
  const conversations = new Conversations({ store, config });
  opened.push(conversations);
  const handler = createChatHandler({
    conversations,
    authenticate: authenticate ?? (({ headers }) => headers.get('x-user')),
  });
  return { handler, conversations, ran };
}

const placeOf = (call: string) => ({ type: 'tool-x', toolCallId: `turn-1.1.${call}` });

/** What a client claims about calls, in its last message. */
function answer(...parts: readonly object[]) {
  return { id: 'c1', messages: [{ id: 'turn-1', role: 'assistant', parts }] };
}

function given(call: string, output: unknown): object {
  return { ...placeOf(call), state: 'output-available', output };
}

function approved(call: string, approval: object): object {
  return { ...placeOf(call), state: 'approval-responded', approval };
}

function textOf(message: UIMessage | undefined): unknown {
  const last = message?.parts.at(-1);
  return last?.type === 'text' ? last.text : last;
}

async function ask(chat: AskedChat, body: object): Promise<readonly [number, string]> {
  const response = await chat.post(body);
  return [response.status, await response.text()];
}

describe('createChatHandler with hostile clients', () => {
  test('one output cannot answer two questions of a call: each is answered by its id', async () => {
    const { handler, conversations } = open();
    const chat = chatOf(handler);
    const asked = await readMessage(await chat.post({ id: 'c1', messages: [said('call survey')] }));
    expect(await ask(chat, answer(given('survey_0', 'red')))).toEqual([
      409,
      expect.stringContaining('`outputs` answers each of them by its id'),
    ]);
    const [colour, city] = (asked.message?.parts ?? []).flatMap((part) =>
      part.type === 'data-question' ? [(part.data as { id: string }).id] : [],
    ) as [string, string];
    await ask(chat, { ...answer(given('survey_0', 'red')), outputs: { [city]: 'Rome' } });
    expect((await conversations.snapshot('c1'))?.pending).toMatchObject([{ id: colour }]);
    expect((await ask(chat, answer(given('survey_0', 'red'))))[1]).toContain('heard: red, Rome');
  });

  test('one output cannot answer two calls of an agent, nor approve a third', async () => {
    const { handler, conversations, ran } = open();
    const pendingOf = async (id: string) =>
      (await conversations.snapshot(id))?.pending.map(({ kind }) => kind);
    const chat = chatOf(handler);
    await readMessage(await chat.post({ id: 'c1', messages: [said('call agent')] }));
    expect(await pendingOf('c1')).toEqual(['client', 'client', 'approval']);
    await ask(chat, answer(given('agent_0', 'here')));
    expect(await pendingOf('c1')).toEqual(['client', 'approval']);
    await ask(chat, answer(given('agent_0', 'there')));
    expect(await pendingOf('c1')).toEqual(['approval']);
    expect((await ask(chat, answer(given('agent_0', 'placed'))))[0]).toBe(409);

    const user = new AgUiUser(
      createChatHandler({ conversations, authenticate: () => 'u1', protocol: 'ag-ui' }),
    );
    await user.say('call agent');
    const [id] = user.interrupts.map((interrupt) => interrupt.id);
    user.agent.addMessage({ id: 'r1', role: 'tool', toolCallId: 'turn-1.1.agent_0', content: 'here' });
    await user.run({
      resume: [{ interruptId: id as string, status: 'resolved', payload: { approved: false } }],
    });
    expect(await pendingOf(user.agent.threadId)).toEqual(['client']);
    expect(ran).toEqual([]);
  });

  test('approving and refusing a call in one request is refused; approving it twice counts once', async () => {
    const { handler, conversations, ran } = open();
    const chat = chatOf(handler);
    await readMessage(await chat.post({ id: 'c1', messages: [said('call place')] }));
    const id = (await conversations.snapshot('c1'))?.pending[0]?.id;
    const [yes, no] = [true, false].map((is) => approved('place_0', { id, approved: is })) as [
      object,
      object,
    ];
    expect((await ask(chat, answer(yes, no)))[0]).toBe(409);
    expect((await ask(chat, answer(no, yes)))[0]).toBe(409);
    expect(ran).toEqual([]);
    expect((await ask(chat, answer(yes, yes)))[0]).toBe(200);
    expect(ran).toHaveLength(1);
    expect((await ask(chat, answer(yes)))[0]).toBe(409);
    expect(ran).toHaveLength(1);
  });

  test('an answer for a chat cannot be used in another user’s chat, even if both wait for the same call', async () => {
    const { handler, conversations, ran } = open();
    const [ada, eve] = [chatOf(handler, 'ada'), chatOf(handler, 'eve')];
    await readMessage(await ada.post({ id: 'hers', messages: [said('call place', 'm1')] }));
    await readMessage(await eve.post({ id: 'mine', messages: [said('call place', 'm1')] }));
    const id = (await conversations.snapshot('hers'))?.pending[0]?.id;
    const stolen = answer(approved('place_0', { id, approved: true }));
    expect((await ask(eve, { ...stolen, id: 'hers' }))[0]).toBe(403);
    expect((await ask(eve, { ...stolen, id: 'mine' }))[0]).toBe(409);
    expect((await ask(eve, { id: 'nobody’s', messages: stolen.messages }))[0]).toBe(409);
    // Messages of another user cannot be regenerated either, by their ids or in their chat.
    const anew = { trigger: 'regenerate-message', messageId: 'm1', messages: [] };
    expect((await ask(eve, { ...anew, id: 'hers' }))[0]).toBe(403);
    await ask(eve, { ...answer(approved('place_0', { id: 'x', approved: true })), id: 'mine' });
    expect((await ask(eve, { ...anew, id: 'none' }))[0]).toBe(422);
    expect(ran).toEqual([]);
  });

  test('aborting a chat that does not exist has no effect on the user who later starts it', async () => {
    const { handler } = open();
    const end = new Request('http://localhost/api/chat?id=c1', {
      method: 'DELETE',
      headers: { 'x-user': 'eve' },
    });
    expect((await handler.fetch(end)).status).toBe(204);
    const read = await readMessage(await chatOf(handler, 'ada').post({ id: 'c1', messages: [said('Hi')] }));
    expect(textOf(read.message)).toBe('heard: Hi');
  });

  test('an owner without an identity is refused, so that such users do not share chats', async () => {
    for (const owner of [{ user: undefined }, { user: null }, [], { user: { id: '' } }, Number.NaN]) {
      const { handler } = open(() => owner);
      expect((await ask(chatOf(handler), { id: 'c1', messages: [said('Hi')] }))[0]).toBe(401);
    }
    const { handler } = open(() => ({ id: 0 }));
    expect((await ask(chatOf(handler), { id: 'c1', messages: [said('Hi')] }))[0]).toBe(200);
  });

  test('JSON that is nested too deeply to be stored is refused and changes nothing', async () => {
    const { handler, conversations } = open();
    await readMessage(await chatOf(handler).post({ id: 'c1', messages: [said('call locate')] }));
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const output = JSON.stringify(answer(given('locate_0', 'DEEP'))).replace('"DEEP"', deep);
    for (const body of [output, `{"id":"c2","trigger":${deep},"messages":[]}`, deep]) {
      const headers = { 'content-type': 'application/json', 'x-user': 'u1' };
      const request = new Request('http://localhost/api/chat', { method: 'POST', headers, body });
      const response = await handler.fetch(request);
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('deeper than 500'),
      ]);
    }
    expect((await conversations.snapshot('c1'))?.status).toBe('suspended');
  });

  test('objects in place of strings do not cause server errors', async () => {
    const { handler } = open();
    const chat = chatOf(handler);
    await readMessage(await chat.post({ id: 'c1', messages: [said('call locate')] }));
    const noText = { toString: 1, valueOf: 1 };
    expect((await ask(chat, answer({ ...placeOf('locate_0'), type: noText })))[0]).toBe(409);
    const failed = { ...placeOf('locate_0'), state: 'output-error', errorText: noText };
    expect((await ask(chat, answer(failed)))[0]).toBe(200);
  });

  test('names of Object.prototype members are valid as ids and arguments', async () => {
    const { handler, conversations, ran } = open();
    const chat = chatOf(handler);
    for (const id of ['__proto__', 'constructor', 'toString']) {
      const read = await readMessage(await chat.post({ id, messages: [said('Hi', id)] }));
      expect(textOf(read.message)).toBe('heard: Hi');
      const kept = (await (await chat.get(id, {}, 'messages')).json()) as readonly UIMessage[];
      expect(kept.map((message) => message.id)).toEqual([id, 'turn-1']);
    }
    await readMessage(await chat.post({ id: 'c1', messages: [said('call place')] }));
    const id = (await conversations.snapshot('c1'))?.pending[0]?.id as string;
    const edits = { [id]: JSON.parse('{"__proto__":{"isAdmin":true},"constructor":2}') };
    await ask(chat, { ...answer(approved('place_0', { id, approved: true })), edits });
    expect(ran).toEqual([[true, '{"__proto__":{"isAdmin":true},"constructor":2}']]);
    expect(Object.hasOwn(Object.prototype, 'isAdmin')).toBe(false);
  });

  test.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data; boundary=x', 415],
    ['application/json, text/plain', 415],
    ['text/plain; application/json', 415],
    ['', 415],
    ['Application/JSON; charset=utf-8', 200],
  ])('a body of the type %p gets status %p', async (type, status) => {
    const { handler } = open();
    const body = JSON.stringify({ id: 'c1', messages: [said('Hi')] });
    const headers = { 'content-type': type, 'x-user': 'u1' };
    const response = await handler.fetch(
      new Request('http://localhost/api/chat', {
        method: 'POST',
        headers,
        body: new TextEncoder().encode(body),
      }),
    );
    expect(response.status).toBe(status);
    await response.body?.cancel();
  });

  test('reading an endless body stops at the limit', async () => {
    const { handler } = open();
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        controller.enqueue(new Uint8Array(65_536).fill(0x20));
      },
    });
    const headers = { 'content-type': 'application/json', 'x-user': 'u1' };
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    expect((await handler.fetch(new Request('http://localhost/api/chat', init))).status).toBe(413);
    expect(sent).toBeLessThan(80);
  });
});

describePostgres('chats in PostgreSQL with hostile clients', (service) => {
  const schemas = new TestSchemas(service);

  test('ids that are too long for the database are refused, and the longest valid ids are stored', async () => {
    const schema = schemas.newSchema();
    await using store = new PostgresRunStore({ connectionString: service.url, schema });
    const { handler } = open(undefined, store);
    const chat = chatOf(handler);
    for (const [id, status] of [
      ['語'.repeat(27), 400],
      ['a'.repeat(201), 400],
    ] as const) {
      expect((await chat.post({ id: 'c1', messages: [said('Hi', id)] })).status).toBe(status);
      expect((await chat.post({ id, messages: [said('Hi', 'm1')] })).status).toBe(status);
    }
    for (const id of ['語'.repeat(26), 'b'.repeat(200)]) {
      const read = await readMessage(await chat.post({ id, messages: [said('Hi', id)] }));
      expect(textOf(read.message)).toBe('heard: Hi');
    }
    for (const conversations of opened.splice(0)) await conversations.close();
  });

  test('characters that PostgreSQL cannot store reach the model and are stored', async () => {
    const schema = schemas.newSchema();
    await using store = new PostgresRunStore({ connectionString: service.url, schema });
    const { handler } = open(undefined, store);
    const chat = chatOf(handler);
    for (const [id, text] of Object.entries({ nul: 'a\u0000b', half: 'a\ud800b' })) {
      const read = await readMessage(await chat.post({ id, messages: [said(text, 'm1')] }));
      expect(textOf(read.message)).toBe(`heard: ${text}`);
      const [first] = (await (await chat.get(id, {}, 'messages')).json()) as readonly UIMessage[];
      expect(textOf(first)).toBe(text);
    }
    for (const conversations of opened.splice(0)) await conversations.close();
  });
});
