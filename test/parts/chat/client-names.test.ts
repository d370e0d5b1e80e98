import { afterEach, describe, expect, test } from '@jest/globals';
import { Conversations, defineTool } from 'toolwright';
import { type ChatHandlerOptions, createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { chatOf, said } from './chat-reader.js';

const opened: Conversations[] = [];

afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

/** A chat that waits for the approval of a payment of 1000. */
async function waiting(protocol: NonNullable<ChatHandlerOptions['protocol']>) {
  const paid: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    parameters: { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] },
    approval: true,
    execute: ({ amount }) => `paid ${paid.push(amount)}`,
  });
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'call_1', name: 'pay', arguments: { amount: 1000 } }] },
    { content: 'done' },
  ]);
  const conversations = new Conversations({
    store: new MemoryRunStore(),
    config: { provider, model: 'm', tools: [pay] },
  });
  opened.push(conversations);
  const chat = chatOf(createChatHandler({ conversations, protocol, authenticate: () => 'u1' }));
  const begin = protocol === 'ag-ui' ? agUiInput('r1', {}) : { id: 'c1', messages: [said('pay', 'm1')] };
  await (await chat.post(begin)).text();
  const [wait] = (await conversations.snapshot('c1'))?.pending ?? [];
  return { chat, paid, conversations, id: wait?.id ?? '' };
}

function agUiInput(runId: string, more: object) {
  const messages = [{ id: 'm1', role: 'user', content: 'pay' }];
  return { threadId: 'c1', runId, state: {}, messages, tools: [], context: [], forwardedProps: {}, ...more };
}

/** An approval as `useChat` sends it. */
function yes(id: string, body: object = {}, approval: object = {}) {
  const part = {
    type: 'tool-pay',
    toolCallId: 'turn-1.1.call_1',
    state: 'approval-responded',
    approval: { id, approved: true, ...approval },
  };
  return { id: 'c1', messages: [{ id: 'turn-1', role: 'assistant', parts: [part] }], ...body };
}

const LESS = { amount: 1 };

describe.each(['ui-messages', 'events'] as const)('misnamed fields in requests: %s', (protocol) => {
  test.each<[string, (id: string) => object, string]>([
    ['edits by the id of the call', () => ({ edits: { 'turn-1.1.call_1': LESS } }), '(pay)'],
    ['edits by the name of the tool', () => ({ edits: { pay: LESS } }), '(pay)'],
    ['a remembered approval under a wrong id', () => ({ remember: { pay: { scope: 'run' } } }), '(pay)'],
    ['an output for an approval', (id) => ({ outputs: { [id]: 1 } }), 'nothing'],
    ['edit for edits', (id) => ({ edit: { [id]: LESS } }), 'did you mean `edits`'],
    ['remembre for remember', (id) => ({ remembre: { [id]: { scope: 'run' } } }), 'did you mean `remember`'],
    ['editedArgs for edits', () => ({ editedArgs: LESS }), 'did you mean `edits` of the body'],
  ])('%s: the request is refused and nothing runs', async (_, body, told) => {
    const { chat, paid, id } = await waiting(protocol);
    const refused = await chat.post(yes(id, body(id)));
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain(told);
    expect(paid).toEqual([]);
    await (await chat.post(yes(id, { edits: { [id]: LESS } }))).text();
    expect(paid).toEqual([1]);
  });

  test.each([{ edits: LESS }, { arguments: LESS }, { remember: { scope: 'run' } }, { reson: 'why' }])(
    'an unknown field in an approval is refused: %j',
    async (approval) => {
      const { chat, paid, id } = await waiting(protocol);
      expect((await chat.post(yes(id, {}, approval))).status).toBe(422);
      expect(paid).toEqual([]);
    },
  );

  test('fields of the application, and edits of approvals that have ended, are accepted', async () => {
    const { chat, paid, id } = await waiting(protocol);
    const over = {
      type: 'tool-pay',
      state: 'output-available',
      approval: { id: 'approval_old', approved: true },
    };
    const { messages } = yes(id);
    const own = { edit: 'on', output: 'markdown', edition: { year: 1 }, editor: {}, model: 'm', data: {} };
    const body = {
      ...own,
      edits: { approval_old: LESS },
      messages: [{ id: 't', role: 'assistant', parts: [over] }, ...messages],
    };
    const taken = await chat.post(yes(id, body));
    expect(taken.status).toBe(200);
    await taken.text();
    expect(paid).toEqual([1000]);
  });
});

describe('misnamed fields in requests: ag-ui', () => {
  const resume = (id: string, payload: object, more: object = {}) => ({
    resume: [{ interruptId: id, status: 'resolved', payload, ...more }],
  });

  test.each<[string, (id: string) => object]>([
    ['edits for editedArgs', (id) => resume(id, { approved: true, edits: LESS })],
    ['arguments for editedArgs', (id) => resume(id, { approved: true, arguments: LESS })],
    ['editedArg for editedArgs', (id) => resume(id, { approved: true, editedArg: LESS })],
    ['edits beside the payload', (id) => resume(id, { approved: true }, { editedArgs: LESS })],
    [
      'edits of the body',
      (id) => ({ ...resume(id, { approved: true }), edits: { [id]: { editedArgs: LESS } } }),
    ],
  ])('%s: the request is refused and nothing runs', async (_, body) => {
    const { chat, paid, id } = await waiting('ag-ui');
    const refused = await (await chat.post(agUiInput('r2', body(id)))).text();
    expect(refused).toContain('did you mean `editedArgs`');
    expect(paid).toEqual([]);
    const right = agUiInput('r3', resume(id, { approved: true, editedArgs: LESS }));
    await (await chat.post(right)).text();
    expect(paid).toEqual([1]);
  });

  test('the arguments of the pending call, and fields of the application, are accepted', async () => {
    const { chat, paid, id } = await waiting('ag-ui');
    const payload = { approved: true, arguments: { amount: 1000 }, tool: 'pay' };
    const body = { ...resume(id, payload), forwardedProps: { edits: LESS } };
    await (await chat.post(agUiInput('r2', body))).text();
    expect(paid).toEqual([1000]);
  });
});
