import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type INestApplication, ValidationPipe } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ToolRegistry } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { AppModule } from './app.module.js';

const order = { email: 'ada@example.org', lines: [{ sku: 'green-tea', quantity: 2 }] };
const provider = new ScriptedProvider([
  { content: '', toolCalls: [{ id: 'call_1', name: 'place_order', arguments: order }] },
  { content: '', toolCalls: [{ id: 'call_2', name: 'refund_order', arguments: { orderId: 'ord_1' } }] },
  { content: 'The order is refunded.' },
]);
let app: INestApplication;
let url: string;

before(async () => {
  const appModule = AppModule.with({ provider, model: 'scripted', path: ':memory:' });
  const module = await Test.createTestingModule({ imports: [appModule] }).compile();
  app = module.createNestApplication();
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
  await app.listen(0, '127.0.0.1');
  url = await app.getUrl();
});

after(() => app.close());

interface Answer {
  readonly status: string;
  readonly content: string;
  readonly runId: string;
  readonly pending: readonly { readonly id: string; readonly tool: string }[];
}

async function post(path: string, { user, body }: { readonly user: string; readonly body: object }) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${user}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}

test('finds the tools of all modules', () => {
  assert.deepEqual(app.get(ToolRegistry).list().toSorted(), [
    'find_customers',
    'place_order',
    'refund_order',
    'show_order',
  ]);
});

test('returns arguments that the DTO refuses to the model', async () => {
  const { isError, forLLM } = await app
    .get(ToolRegistry)
    .execute('place_order', { email: 'nobody', lines: [] });
  assert.equal(isError, true);
  assert.match(forLLM, /email/);
});

test('suspends a run for an approval that only its owner can give', async () => {
  const { body: run } = await post('/runs', { user: 'ada', body: { text: 'Order tea and refund it.' } });
  assert.equal(run.status, 'suspended');
  const [pending] = run.pending;
  assert.equal(pending?.tool, 'refund_order');

  const decision = { id: pending?.id, approved: true };
  const decisions = `/runs/${run.runId}/decisions`;
  assert.equal((await post(decisions, { user: 'grace', body: decision })).status, 403);
  const { body: ended } = await post(decisions, { user: 'ada', body: decision });
  assert.equal(ended.status, 'completed');
  assert.equal(ended.content, 'The order is refunded.');
});
