import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/chat`;
});

after(close);

async function send(message: object): Promise<string> {
  const response = await fetch(url, {
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
