import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { jsonSpan } from '../../../src/run/text/text-cursor.js';
import { runs } from '../../setup/runs.js';

const container = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()));
const written = fc
  .tuple(container, fc.constantFrom(0, 2))
  .map(([value, indent]) => JSON.stringify(value, null, indent));

test('a JSON object or array is closed at its end, regardless of the text after it', () => {
  fc.assert(
    fc.property(fc.string(), written, fc.string(), (before, json, after) => {
      const end = before.length + json.length;
      expect(jsonSpan(before + json + after, before.length)).toEqual({ kind: 'closed', end });
    }),
  );
});

test('every proper prefix of JSON is open', () => {
  fc.assert(
    fc.property(written, fc.nat(), (json, length) => {
      expect(jsonSpan(json.slice(0, Math.max(1, length % json.length)), 0)).toEqual({ kind: 'open' });
    }),
  );
});

test('only text that JSON.parse accepts is closed, and a search after broken JSON always advances', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    'a',
    '1',
    '-',
    '.5',
    'e3',
    'true',
    'nul',
    '\\',
    '\\u12',
    '\n',
    ' ',
  );
  fc.assert(
    fc.property(fc.constantFrom('{', '['), fc.array(pieces, { maxLength: 12 }), (first, rest) => {
      const text = first + rest.join('');
      const span = jsonSpan(text, 0);
      if (span.kind === 'closed') expect(() => JSON.parse(text.slice(0, span.end))).not.toThrow();
      else expect(() => JSON.parse(text)).toThrow();
      if (span.kind === 'broken') expect(span.resumeAt).toBeGreaterThan(0);
    }),
    { numRuns: runs(2000) },
  );
});
