import { afterEach, expect, test } from '@jest/globals';
import { Conversations, defineTool } from 'toolwright';
import { type ChatHandlerOptions, createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { chatOf, said } from './chat-reader.js';

const opened: Conversations[] = [];

afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

type Protocol = NonNullable<ChatHandlerOptions['protocol']>;

const SAY = { description: 'Says it', parameters: { type: 'object', properties: {} } } as const;

/** A chat that waits for an answer to a call of a tool. */
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

test.each(PROTOCOLS)('an answer that does not fit is told its fault: %s', async (protocol) => {
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

test.each(PROTOCOLS)('an approval is answered by yes or no, and else told so: %s', async (protocol) => {
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

test('what is no grant of a budget is told so', async () => {
  const { post, ran } = await waiting('ui-messages', 'free');
  for (const output of [0, 3, 1.5, '2', -1, null]) {
    const { status, text } = await post({ output });
    expect([output, status, text]).toEqual([output, 422, expect.stringContaining('does not fit')]);
  }
  expect(ran).toEqual([]);
  await post({ output: 1 });
  expect(ran).toEqual(['free']);
});

test.each(PROTOCOLS)('of a yes and a no at once, the later one hears of it: %s', async (protocol) => {
  const { post, ran, conversations } = await waiting(protocol, 'pay');
  const both = await Promise.all([post({ approved: true }), post({ approved: false })]);
  const late = both.filter(
    ({ status, text }) => status === 409 || /answered already|answers-refused/.test(text),
  );
  expect(late).toHaveLength(1);
  expect(await conversations.idle('c1')).toMatchObject({ status: 'idle', inbox: [] });
  expect(ran).toEqual(late[0] === both[1] ? ['paid'] : []);
});
