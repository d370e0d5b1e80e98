import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Conversations, defineTool } from 'toolwright';
import { type ChatHandlerOptions, createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { chatOf, said } from './chat-reader.js';

const opened: Conversations[] = [];
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  for (const conversations of opened.splice(0)) await conversations.close();
});

type Protocol = NonNullable<ChatHandlerOptions['protocol']>;

const SAY = { description: 'Says it', parameters: { type: 'object', properties: {} } } as const;

/** A chat that waits for an answer to a call. */
async function waiting(protocol: Protocol, name: 'pay' | 'book' | 'free') {
  const ran: unknown[] = [];
  const tools = [
    defineTool({ name: 'pay', ...SAY, approval: true, execute: () => `paid ${ran.push('paid')}` }),
    defineTool({ name: 'free', ...SAY, execute: () => `free ${ran.push('free')}` }),
    defineTool({
      name: 'book',
      ...SAY,
      execute: async (_, context) => {
        const schema = { type: 'integer', minimum: 1, maximum: 4 } as const;
        return `booked ${ran.push(await context.ask({ message: 'How many?', schema }))}`;
      },
    }),
  ];
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'call_1', name, arguments: {} }] },
    { content: 'done' },
  ]);
  const budget = { conversation: { calls: 0, whenSpent: { ask: { calls: 2 } } } };
  const config = { provider, model: 'm', tools, ...(name === 'free' ? { budget } : {}) };
  const conversations = new Conversations({ store: new MemoryRunStore(), config });
  opened.push(conversations);
  const chat = chatOf(createChatHandler({ conversations, protocol, authenticate: () => 'u1' }));
  const begin = protocol === 'ag-ui' ? agUiInput('r1', []) : { id: 'c1', messages: [said('go', 'm1')] };
  await (await chat.post(begin)).text();
  const [wait] = (await conversations.snapshot('c1'))?.pending ?? [];
  const { id = '', callId = '' } = wait ?? {};
  const post = async (given: { readonly approved: unknown } | { readonly output: unknown }) => {
    const response = await chat.post(protocol === 'ag-ui' ? resumed(id, given) : answered(id, callId, given));
    return { status: response.status, text: await response.text() };
  };
  return { conversations, post, ran };
}

function agUiInput(runId: string, resume: readonly object[]) {
  const messages = [{ id: 'm1', role: 'user', content: 'go' }];
  return { threadId: 'c1', runId, state: {}, messages, tools: [], context: [], forwardedProps: {}, resume };
}

function resumed(interruptId: string, given: object) {
  const payload = 'output' in given ? given.output : given;
  return agUiInput(crypto.randomUUID(), [{ interruptId, status: 'resolved', payload }]);
}

function answered(id: string, callId: string, given: object) {
  const what =
    'output' in given
      ? { state: 'output-available', ...given }
      : { state: 'approval-responded', approval: { id, ...given } };
  const part = { type: 'dynamic-tool', toolCallId: `turn-1.1.${callId}`, ...what };
  return { id: 'c1', messages: [{ id: 'turn-1', role: 'assistant', parts: [part] }] };
}

const PROTOCOLS = ['ui-messages', 'events', 'ag-ui'] as const;

test.each(PROTOCOLS)('an invalid answer is refused with the validation error: %s', async (protocol) => {
  const { post, ran } = await waiting(protocol, 'book');
  const refusals = [
    { output: 99, fault: 'must be <= 4' },
    { output: 'four', fault: 'must be integer' },
  ];
  for (const { output, fault } of refusals) {
    const { status, text } = await post({ output });
    expect(status).toBe(protocol === 'ag-ui' ? 200 : 422);
    expect(text).toContain(fault);
    if (protocol === 'ag-ui') expect(text).toContain('RUN_ERROR');
  }
  expect(ran).toEqual([]);
  expect((await post({ output: 3 })).status).toBe(200);
  expect(ran).toEqual([3]);
});

test.each(PROTOCOLS)('an approval whose `approved` is not a boolean is refused: %s', async (protocol) => {
  const { post, ran } = await waiting(protocol, 'pay');
  for (const approved of ['yes', 'true', 1, null, undefined, { approved: true }]) {
    const { status, text } = await post({ approved });
    expect([approved, status]).toEqual([approved, protocol === 'ag-ui' ? 200 : 422]);
    expect(text).toContain('must be { approved: true } or { approved: false }');
  }
  expect(ran).toEqual([]);
  expect((await post({ approved: true })).status).toBe(200);
  expect(ran).toEqual(['paid']);
});

test('an invalid answer to a budget question is refused', async () => {
  const { post, ran } = await waiting('ui-messages', 'free');
  for (const output of [0, 3, 1.5, '2', -1, null]) {
    const { status, text } = await post({ output });
    expect([output, status, text]).toEqual([output, 422, expect.stringContaining('does not fit')]);
  }
  expect(ran).toEqual([]);
  await post({ output: 1 });
  expect(ran).toEqual(['free']);
});

test.each(PROTOCOLS)(
  'if a call is approved and refused at the same time, the later answer is refused: %s',
  async (protocol) => {
    const { post, ran, conversations } = await waiting(protocol, 'pay');
    const both = await Promise.all([post({ approved: true }), post({ approved: false })]);
    const late = both.filter(
      ({ status, text }) => status === 409 || /already answered|answers-refused/.test(text),
    );
    expect(late).toHaveLength(1);
    expect(await conversations.idle('c1')).toMatchObject({ status: 'idle', inbox: [] });
    expect(ran).toEqual(late[0] === both[1] ? ['paid'] : []);
  },
);

/** A chat over HTTP with so many approvals, the first `given` of them answered; no turn runs until `taking` is called. */
async function answeredTooLate(protocol: Protocol, approvals: number, given: number) {
  const store = new MemoryRunStore();
  const pay = defineTool({ name: 'pay', ...SAY, approval: true, execute: () => 'paid' });
  const asking = Array.from({ length: approvals }, (_, at) => ({
    toolCalls: [{ id: `call_${at}`, name: 'pay' }],
  }));
  const provider = new ScriptedProvider([...asking, { content: 'done' }]);
  const open = (more: { readonly takesTurns?: false } = {}) => {
    const conversations = new Conversations({
      store,
      config: { provider, model: 'm', tools: [pay] },
      ...more,
    });
    opened.push(conversations);
    return conversations;
  };
  const owner = 'u1';
  const taker = open();
  await taker.prompt('c1', 'go', { owner });
  const answered: string[] = [];
  for (let at = 0; at < given; at += 1) {
    const [wait] = (await taker.idle('c1'))?.pending ?? [];
    answered.push(wait?.id ?? '');
    await taker.answer('c1', [{ id: wait?.id ?? '', approved: true }], { owner });
  }
  const { lastEvent = 0 } = (await taker.idle('c1')) ?? {};
  await taker.close();
  // As if another user had answered just before, when both answers could still enter the inbox.
  const answers = [{ id: answered.at(-1) ?? '', approved: false }];
  await store.conversations.enter({
    conversationId: 'c1',
    key: 'late',
    content: { kind: 'answers', answers, owner },
  });
  const conversations = open({ takesTurns: false });
  const handler = createChatHandler({ conversations, protocol, authenticate: () => 'u1' });
  const server = createServer(handler.node);
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/chat/c1/stream`;
  const read = async (seen?: number, onBegin = () => {}) => {
    const headers: Record<string, string> = seen === undefined ? {} : { 'last-event-id': `${seen}` };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(4_000) });
    onBegin();
    return { status: response.status, text: await response.text() };
  };
  return { read, lastEvent, taking: async () => void (await open().idle('c1')) };
}

describe('a reader that reconnects while late answers wait in the inbox', () => {
  test.each(['ui-messages', 'events'] as const)('gets status 204: %s', async (protocol) => {
    const { read, lastEvent } = await answeredTooLate(protocol, 1, 1);
    expect(await read()).toEqual({ status: 204, text: '' });
    expect(await read(lastEvent)).toEqual({ status: 204, text: '' });
  });

  test('gets a complete AG-UI run', async () => {
    const { read } = await answeredTooLate('ag-ui', 1, 1);
    const { status, text } = await read();
    expect([status, text]).toEqual([200, expect.stringContaining('RUN_FINISHED')]);
  });

  test('gets the missed events of the turn, and then the end', async () => {
    const { read, lastEvent } = await answeredTooLate('events', 1, 1);
    const { status, text } = await read(lastEvent - 1);
    expect([status, text]).toEqual([
      200,
      expect.stringContaining(`id: ${lastEvent}\ndata: {"type":"turn-end"`),
    ]);
  });

  test('gets the refusal of the answers, and then the end', async () => {
    const { read, lastEvent, taking } = await answeredTooLate('events', 1, 1);
    await taking();
    const { status, text } = await read(lastEvent);
    expect([status, text]).toEqual([
      200,
      expect.stringMatching(/^id: \d+\ndata: \{"type":"answers-refused"[^\n]*\n\n$/),
    ]);
    expect((await read(lastEvent + 1)).status).toBe(204);
  });

  test.each(PROTOCOLS)('gets what the turn waits for, and then the end: %s', async (protocol) => {
    const { read, taking } = await answeredTooLate(protocol, 2, 1);
    const { status, text } = await read(undefined, () => void taking());
    expect(status).toBe(200);
    expect(text).toContain(
      { 'ui-messages': 'tool-approval-request', events: 'turn-suspended', 'ag-ui': 'interrupt' }[protocol],
    );
    if (protocol === 'events') expect(text).toContain('answers-refused');
    if (protocol === 'ag-ui') expect(text).not.toContain('RUN_ERROR');
  });
});
