import { describe, expect, test } from '@jest/globals';
import formats from 'ajv-formats/dist/formats.js';
import fc from 'fast-check';
import { defineTool, ToolRegistry } from 'toolwright';
import { formatTest, jsonFormats } from '../../../src/checking/formats.js';
import { leastGrowth } from '../../setup/least-growth.js';
import { runs } from '../../setup/runs.js';

const fitsFormat = (text: string, name: string): boolean => formatTest(name, 'string')?.(text) ?? true;

const PIECES = [
  ...[
    'http://',
    'https://',
    'FTP://',
    'ftp:/',
    'mailto:',
    '//',
    '/',
    '@',
    ':',
    '.',
    '-',
    '--',
    ' ',
    '\n',
    '?q=1',
    '#f',
  ],
  ...[
    'a',
    'Z',
    'example',
    'com',
    'x1',
    '1',
    '10',
    '127',
    '05',
    '099',
    '255',
    '223',
    '224',
    '254',
    '192.168.',
    '172.16.',
  ],
  ...[
    '8.8.8.8',
    '1.2.3.4',
    ':80',
    ':8',
    ':123456',
    'é',
    '￿',
    '😀',
    '_',
    '%20',
    '"',
    '"a b"',
    '\u0000',
    'user:pass@',
  ],
];
const text = fc.array(fc.constantFrom(...PIECES), { maxLength: 9 }).map((pieces) => pieces.join(''));

test('url has the verdict of ajv-formats', () => {
  const expected = formats.fullFormats.url as RegExp;
  const likely = fc
    .tuple(fc.constantFrom('http://', 'https://', 'ftp://', ''), text)
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(likely, (value) => {
      const verdict = fitsFormat(value, 'url');
      // Thousands of expectations take longer than the verdicts.
      if (verdict !== expected.test(value)) expect([value, verdict]).toEqual([value, !verdict]);
    }),
    { numRuns: runs(8_000) },
  );
});

test('email has the verdict of the expression that says what it is', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  const expected = /^(?:"[\s\S]*"|[^\x00-\x20"@]+)@[^\x00-\x20@]+\.[^\x00-\x20@]+$/;
  fc.assert(
    fc.property(text, (value) => {
      const verdict = fitsFormat(value, 'email');
      if (verdict !== expected.test(value)) expect([value, verdict]).toEqual([value, !verdict]);
    }),
    { numRuns: runs(8_000) },
  );
});

/** What makes expressions with nested repetitions slow, as beginning, repeated middle and end. */
const ADVERSARIAL: readonly (readonly [string, string, string])[] = [
  ['a@', '.', ''],
  ['a@', '.', '@'],
  ['', 'a.', '@'],
  ['http://', 'a.', '!'],
  ['http://', 'a-', ' '],
  ['http://', ':', '@'],
  ['http://', 'a:', '@!'],
  ['http://', '@a/', ' '],
  ['', ':', '!'],
  ['', '/', '^'],
  ['', '%41', '%'],
  ['', '{a}', '{'],
  ['{a', ',a', '!'],
  ['P', '1', '!'],
  ['', '1:', ''],
  ['', '/~0', '~'],
  ['', 'AAAA\n', '!'],
  ['2020-01-01T00:00:00.', '1', 'x'],
];

describe('a format takes time in proportion to the text:', () => {
  test.each(Object.keys(jsonFormats()).filter((name) => name !== 'regex'))('%s', async (name) => {
    for (const [start, middle, end] of ADVERSARIAL) {
      const of = (size: number) => start + middle.repeat(size / middle.length) + end;
      const [small, large] = [of(5_000), of(500_000)];
      // A hundred times the text; quadratic time would be ten thousand times as long.
      const growth = await leastGrowth({
        small: () => fitsFormat(small, name),
        large: () => fitsFormat(large, name),
        most: 1_500,
        noiseMs: 0.1,
      });
      expect([start, middle, growth < 1_500]).toEqual([start, middle, true]);
    }
  });
});

test('ToolRegistry refuses 48,000 dots for an email', async () => {
  const parameters = { type: 'object', properties: { to: { type: 'string', format: 'email' } } };
  const tool = defineTool({ name: 't', description: 'd', parameters, execute: () => 'sent' });
  const result = await new ToolRegistry().register(tool).execute('t', { to: `a@${'.'.repeat(48_000)}@` });
  expect(result.isError).toBe(true);
});
