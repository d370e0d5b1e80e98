import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readArguments } from '../../../src/checking/read-arguments.js';

describe('reading arguments', () => {
  test.each([undefined, null, '', '  ', 'null', '""', '"null"', '{}', ' {} '])(
    '%j means no arguments',
    (raw) => {
      expect(readArguments(raw)).toEqual({ ok: true, value: {} });
    },
  );

  test.each([[{ a: 1 }], ['{"a":1}'], ['"{\\"a\\":1}"']])('%j is read as an object', (raw) => {
    expect(readArguments(raw)).toEqual({ ok: true, value: { a: 1 } });
  });

  test.each([
    ['[1]', 'the arguments must be a JSON object, not an array'],
    ['7', 'the arguments must be a JSON object, not number'],
    ['"text"', 'the arguments must be a JSON object, not string'],
    [[1], 'the arguments must be a JSON object, not an array'],
    [true, 'the arguments must be a JSON object, not boolean'],
    ['{"a":', 'the arguments are no valid JSON'],
    ['{"path": "/tm', 'the arguments are no valid JSON'],
  ])('%j is no object, and the message says what it is', (raw, message) => {
    expect(readArguments(raw)).toEqual({ ok: false, message });
  });

  test('any text is read or refused, never thrown at', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.anything()), (raw) => {
        expect(typeof readArguments(raw).ok).toBe('boolean');
      }),
    );
  });

  test('any object survives being written as text, once or twice', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const text = JSON.stringify(value);
        const expected = { ok: true, value: JSON.parse(text) };
        expect(readArguments(text)).toEqual(expected);
        expect(readArguments(JSON.stringify(text))).toEqual(expected);
      }),
    );
  });
});
