import { describe, expect, test } from '@jest/globals';
import { describeRejection, type Rejection } from '../../../src/checking/faults.js';

const schema = {
  type: 'object',
  properties: {
    customerId: { type: 'string' },
    items: { type: 'array', items: { type: 'object', properties: { quantity: { type: 'integer' } } } },
  },
  required: ['customerId'],
};
const fault = { path: 'customerId', message: 'is required' };
const told = (rejection: Partial<Rejection>) =>
  describeRejection({ tool: 'order', faults: [fault], schema, removed: [], sent: {}, ...rejection }).split(
    '\n',
  );

describe('what the model is told about refused arguments', () => {
  test('is the faults alone where nothing was sent', () => {
    for (const sent of [{}, '', '  ', null, undefined]) {
      expect(told({ sent })).toEqual(["Validation failed for tool 'order':", '  - customerId: is required']);
    }
  });

  test('names the known property that an unknown one may have meant, after all faults', () => {
    expect(told({ removed: ['customer_ID'], sent: { customer_ID: 'c' } })).toEqual([
      "Validation failed for tool 'order':",
      '  - customerId: is required',
      'There is no property "customer_ID"; did you mean "customerId"?',
      'Received: {"customer_ID":"c"}',
    ]);
  });

  test('looks for the known property at the place of the unknown one', () => {
    expect(told({ removed: ['items.0.quantitty'] })).toContain(
      'There is no property "quantitty"; did you mean "quantity"?',
    );
    expect(told({ removed: ['items.0.customerId', 'nowhere.at.all'] })).toHaveLength(2);
  });

  test('guesses nothing where no name is near', () => {
    expect(told({ removed: ['zebra'] })).toHaveLength(2);
  });

  test('stays short, however much was sent and however much is wrong', () => {
    const faults = Array.from({ length: 10_000 }, (_, index) => ({
      path: `items.${index}`,
      message: 'x'.repeat(5_000),
    }));
    const removed = Array.from({ length: 10_000 }, (_, index) => `customerI${index}`);
    const text = told({ faults, removed, sent: { text: 'y'.repeat(1_000_000) } }).join('\n');
    expect(text.length).toBeLessThan(25_000);
    expect(text).toContain('… and 9,950 more');
    expect(text).toMatch(/Received: .{300}… \(\d+ more characters\)$/);
  });

  test('shows broken text as it came, on one line', () => {
    expect(told({ sent: '{"a":\n  1' }).at(-1)).toBe('Received: {"a": 1');
  });
});
