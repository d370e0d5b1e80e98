import { describe, expect, test } from '@jest/globals';
import { toldLines } from './reported-faults.js';

const schema = {
  type: 'object',
  properties: {
    customerId: { type: 'string' },
    items: { type: 'array', items: { type: 'object', properties: { quantity: { type: 'integer' } } } },
  },
  required: ['customerId'],
};
const told = (sent: unknown) => toldLines(schema, sent);
const hints = (sent: unknown) => told(sent).filter((line) => line.startsWith('There is no property'));

describe('ToolRegistry.invoke: what the model is told of refused arguments', () => {
  test('is the faults alone where nothing was sent', () => {
    for (const sent of [{}, '', '  ', null, undefined]) {
      expect(told(sent)).toEqual(["Validation failed for tool 'search':", '  - customerId: is required']);
    }
  });

  test('names the known property that an unknown one may have meant, after all faults', () => {
    expect(told({ customer_ID: 'c' })).toEqual([
      "Validation failed for tool 'search':",
      '  - customerId: is required',
      'There is no property "customer_ID"; did you mean "customerId"?',
      'Received: {"customer_ID":"c"}',
    ]);
  });

  test('looks for the known property at the place of the unknown one', () => {
    expect(hints({ items: [{ quantitty: 1 }] })).toEqual([
      'There is no property "quantitty"; did you mean "quantity"?',
    ]);
    expect(hints({ items: [{ customerId: 1 }], nowhere: { at: { all: 1 } } })).toEqual([]);
  });

  test('guesses nothing where no name is near', () => {
    expect(hints({ zebra: 1 })).toEqual([]);
  });

  test('stays short, however much was sent and however much is wrong', () => {
    const items = Array.from({ length: 10_000 }, () => ({ quantity: 'x'.repeat(50) }));
    const unknown = Array.from({ length: 10_000 }, (_, index) => [`customerI${index}`, 'y'.repeat(100)]);
    const text = told({ ...Object.fromEntries(unknown), items }).join('\n');
    expect(text.length).toBeLessThan(25_000);
    expect(text).toContain('… and 9,951 more');
    expect(text).toMatch(/Received: .{300}… \(\d+ more characters\)$/);
  });

  test('shows broken text as it came, on one line', () => {
    expect(told('{"a":\n  1').at(-1)).toBe('Received: {"a": 1');
  });
});
