import assert from 'node:assert/strict';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { LLMProvider, LLMResponse } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { createChatServer } from './create-server.js';

const cookie = 'session=00000000-0000-4000-8000-000000000000';
const toolCalls = [{ id: 'call_1', name: 'refund_order', arguments: { orderId: 'ord_1', reason: 'late' } }];
const provider = new ScriptedProvider([{ content: '', toolCalls }, { content: 'It is refunded.' }]);
const { server, close } = await createChatServer({
  path: ':memory:',
  model: { provider, model: 'scripted' },
});
let url: string;

before(async () => {
  url = await listen(server);
});

after(close);

async function listen(http: Server): Promise<string> {
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/api/chat`;
}

async function send(message: object, to = url): Promise<string> {
  const response = await fetch(to, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie },
    body: JSON.stringify({ id: 'chat-1', messages: [message] }),
  });
  assert.equal(response.status, 200);
  return response.text();
}

test('refuses a request without a session', async () => {
  assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 401);
});

test('waits for an approval, and refunds when it is given', async () => {
  const stream = await send({
    id: 'm1',
    role: 'user',
    parts: [{ type: 'text', text: 'Refund order ord_1.' }],
  });
  const [, chunk = ''] = /data: (.*"tool-approval-request".*)/.exec(stream) ?? [];
  const { toolCallId, approvalId } = JSON.parse(chunk) as { toolCallId: string; approvalId: string };
  const answered = await send({
    id: 'turn-1',
    role: 'assistant',
    parts: [
      {
        type: 'tool-refund_order',
        toolCallId,
        state: 'approval-responded',
        approval: { id: approvalId, approved: true },
      },
    ],
  });
  assert.match(answered, /12.5 EUR were refunded \(late\)/);
  assert.match(answered, /is refunded\./);
});

test('a shutdown lets an answer that has begun reach its reader', async () => {
  const asked = Promise.withResolvers<void>();
  const reply = Promise.withResolvers<LLMResponse>();
  const slow: LLMProvider = {
    chat: () => {
      asked.resolve();
      return reply.promise;
    },
  };
  const chat = await createChatServer({ path: ':memory:', model: { provider: slow, model: 'slow' } });
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
  const answer = send(message, await listen(chat.server));
  await asked.promise;
  const closed = chat.close();
  reply.resolve({ content: 'Good day.', toolCalls: [], finishReason: 'stop' });
  assert.match(await answer, /Good day\.[\s\S]*"type":"finish"/);
  await closed;
});
