import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tools } from './tools.js';

test('finds a customer by a part of the name', async () => {
  const { forLLM } = await tools.execute('find_customer', { name: 'ada' });
  assert.deepEqual(JSON.parse(forLLM), [{ id: 'cus_1', name: 'Ada Lovelace', city: 'London' }]);
});

test('returns wrong arguments to the model with a reason', async () => {
  const { isError, forLLM } = await tools.execute('find_customer', { name: '' });
  assert.equal(isError, true);
  assert.match(forLLM, /name/);
});

test('describes the tools of the class by its types and comments', () => {
  const refund = tools.get('refund_order');
  assert.equal(refund?.description, 'Refund an order');
  assert.deepEqual(refund?.parameters.properties?.reason?.enum, ['damaged', 'late', 'other']);
});
