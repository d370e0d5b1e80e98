import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readArguments } from './reported-faults.js';

const CUT = 'the arguments are cut off in the middle of a value; send them again, complete';

describe('ToolRegistry.invoke reads arguments:', () => {
  test.each([undefined, null, '', '  ', 'null', '""', '"null"', '{}', ' {} '])(
    '%j is read as empty arguments',
    (raw) => {
      expect(readArguments(raw)).toMatchObject({ ok: true, value: {} });
    },
  );

  test.each([[{ a: 1 }], ['{"a":1}'], ['"{\\"a\\":1}"']])('%j is read as an object', (raw) => {
    expect(readArguments(raw)).toMatchObject({ ok: true, value: { a: 1 } });
  });

  test.each([
    ['[1]', 'the arguments must be a JSON object, not an array'],
    ['7', 'the arguments must be a JSON object, not number'],
    ['"text"', 'the arguments must be a JSON object, not string'],
    [[1], 'the arguments must be a JSON object, not an array'],
    [true, 'the arguments must be a JSON object, not boolean'],
    ['{"a":', CUT],
    ['{"path": "/tm', CUT],
    ['{"amount": 12', CUT],
    ['{"paths": ["/a", "/b', CUT],
    ['{"force": tru', CUT],
    ['{"a": "x}', CUT],
  ])('%j is refused, and the message states the problem', (raw, message) => {
    expect(readArguments(raw)).toEqual({ ok: false, message });
  });

  test('repaired JSON may be nested 100 levels deep, and deeper JSON is refused without repair', () => {
    const nested = (depth: number) => `${'{a: '.repeat(depth)}1${'}'.repeat(depth)}`;
    const read = readArguments(nested(100));
    expect(read).toMatchObject({ ok: true, repairs: [expect.any(String)] });
    expect(JSON.stringify(read.ok && read.value)).toHaveLength(601);
    for (const depth of [101, 5000, 100_000])
      expect(readArguments(nested(depth))).toEqual({ ok: false, message: expect.any(String) });
  });

  test('any text is read or refused, and nothing throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.anything()), (raw) => {
        expect(typeof readArguments(raw).ok).toBe('boolean');
      }),
    );
  });

  test('any object can be encoded as JSON once or twice', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (sent) => {
        const text = JSON.stringify(sent);
        const value = JSON.parse(text);
        expect(readArguments(text)).toEqual({ ok: true, value, repairs: [] });
        expect(readArguments(JSON.stringify(text))).toMatchObject({ ok: true, value });
      }),
    );
  });

  test.each([
    ['```json\n{"a": 1}\n```', 'removed the text around the JSON object'],
    ['Here you are: {"a": 1} Anything else?', 'removed the text around the JSON object'],
    ['{"a": 1,}', 'repaired the JSON'],
    ['{a: 1}', 'repaired the JSON'],
    ["{'a': 1}", 'repaired the JSON'],
    ['{"a": 1 /* one */}', 'repaired the JSON'],
    ['{"a": 1, "b": "x"', 'repaired the JSON'],
    ['"{\\"a\\": 1}"', 'decoded JSON that was encoded twice'],
  ])('%j is repaired, and the repair is recorded', (raw, repair) => {
    expect(readArguments(raw)).toMatchObject({ ok: true, value: { a: 1 }, repairs: [repair] });
  });

  test('a value that was cut off is never completed, at any position', () => {
    const whole = '{"path": "/var/data", "count": 1250, "deep": [{"flag": true, "note": "a \\"b\\" c"}]}';
    for (let length = 1; length < whole.length; length += 1) {
      const read = readArguments(whole.slice(0, length));
      if (!read.ok) continue;
      const { path, count, deep } = read.value as {
        path?: string;
        count?: number;
        deep?: { flag?: boolean; note?: string }[];
      };
      expect([undefined, '/var/data']).toContain(path);
      expect([undefined, 1250]).toContain(count);
      expect([undefined, true]).toContain(deep?.[0]?.flag);
      expect([undefined, 'a "b" c']).toContain(deep?.[0]?.note);
    }
  });

  test('hostile text is refused without a stack overflow', () => {
    for (const text of [
      '['.repeat(100_000),
      '{"a":'.repeat(50_000),
      `{"a":"${'\\'.repeat(100_001)}`,
      'x'.repeat(1_000_000),
    ]) {
      expect(readArguments(text).ok).toBe(false);
    }
  });
});
