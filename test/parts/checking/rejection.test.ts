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

describe('ToolRegistry.invoke: the model’s error message for refused arguments', () => {
  test('contains only the errors if nothing was sent', () => {
    for (const sent of [{}, '', '  ', null, undefined]) {
      expect(told(sent)).toEqual(["Validation failed for tool 'search':", '  - customerId: is required']);
    }
  });

  test('suggests a known property for an unknown one, after all errors', () => {
    expect(told({ customer_ID: 'c' })).toEqual([
      "Validation failed for tool 'search':",
      '  - customerId: is required',
      'There is no property "customer_ID"; did you mean "customerId"?',
      'Received: {"customer_ID":"c"}',
    ]);
  });

  test('suggests only properties of the object that contains the unknown one', () => {
    expect(hints({ items: [{ quantitty: 1 }] })).toEqual([
      'There is no property "quantitty"; did you mean "quantity"?',
    ]);
    expect(hints({ items: [{ customerId: 1 }], nowhere: { at: { all: 1 } } })).toEqual([]);
  });

  test('suggests nothing if no name is similar', () => {
    expect(hints({ zebra: 1 })).toEqual([]);
  });

  test('stays short, even for large arguments with many errors', () => {
    const items = Array.from({ length: 10_000 }, () => ({ quantity: 'x'.repeat(50) }));
    const unknown = Array.from({ length: 10_000 }, (_, index) => [`customerI${index}`, 'y'.repeat(100)]);
    const text = told({ ...Object.fromEntries(unknown), items }).join('\n');
    expect(text.length).toBeLessThan(25_000);
    expect(text).toContain('… and 9,951 more');
    expect(text).toMatch(/Received: .{300}… \(\d+ more characters\)$/);
  });

  test('shows invalid JSON unchanged, on one line', () => {
    expect(told('{"a":\n  1').at(-1)).toBe('Received: {"a": 1');
  });
});
