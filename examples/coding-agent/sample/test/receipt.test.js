import assert from 'node:assert/strict';
import { test } from 'node:test';
import { priceOf, totalOf } from '../src/receipt.js';

test('an item counts as often as it is in the basket', () => {
  const items = [
    { name: 'milk', cents: 120, count: 2 },
    { name: 'bread', cents: 310, count: 1 },
  ];
  assert.equal(totalOf(items), 550);
});

test('cents have two digits', () => {
  assert.equal(priceOf(1205), '12.05 €');
  assert.equal(priceOf(550), '5.50 €');
});
