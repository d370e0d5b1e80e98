import { describe, expect, test } from '@jest/globals';
import formats from 'ajv-formats/dist/formats.js';
import fc from 'fast-check';
import { defineTool, ToolRegistry } from 'toolwright';
import { FORMATS, formatTest } from '../../../src/tools/checking/formats.js';
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

test('url gives the same results as ajv-formats', () => {
  const expected = formats.fullFormats.url as RegExp;
  const likely = fc
    .tuple(fc.constantFrom('http://', 'https://', 'ftp://', ''), text)
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(likely, (value) => {
      const verdict = fitsFormat(value, 'url');
      // Thousands of expect calls take longer than the validation.
      if (verdict !== expected.test(value)) expect([value, verdict]).toEqual([value, !verdict]);
    }),
    { numRuns: runs(8_000) },
  );
});

const LIKELY: Readonly<Record<string, readonly string[]>> = {
  date: [
    '2024-02-29',
    '2023-02-29',
    '1900-02-29',
    '2000-02-29',
    '0000-02-29',
    '2024-04-31',
    '2024-13-01',
    '2024-1-1',
  ],
  time: [
    '09:30:00Z',
    '09:30:00',
    '23:59:60Z',
    '22:59:60Z',
    '15:59:60-08:00',
    '00:29:60+00:30',
    '23:29:60-0030',
  ],
  zone: ['09:30:00.125z', '09:30:00+24:00', '09:30:00+0960', '09:30:60+05:30', '24:00:00Z', '09:60:00Z'],
  'date-time': [
    '2024-02-29T09:30:00Z',
    '2024-02-29 09:30:00z',
    '2024-02-29t09:30:00',
    '2024-02-29T1T2',
    '2024-02-29',
  ],
  duration: ['P1Y2M3DT4H5M6S', 'P3W', 'P', 'PT', 'P1DT', 'P1W2D', 'PT5M', 'P1Y1W'],
  uri: [
    'http://a.b/c?d=e#f',
    'urn:isbn:1',
    'a:',
    '//a',
    'http://[::1]:80/',
    'http://[v1.x]/',
    'http://a b',
    'x:%4',
    'http:///p',
  ],
  'uri-reference': [
    '/a/b',
    'a"b',
    '?q',
    '#f',
    '//u:p@h:1/p',
    'a:b:c',
    '',
    '/%zz',
    '//[::1',
    'http://1.2.3.4.5',
  ],
  'uri-template': ['/a/{b}', '{+x,y:3}', '{a*}', '{', '{a,}', '{a:0}', '%4g', '/{?q*}'],
  hostname: ['a.b', 'a-.b', '-a', 'a..b', 'a.', `${'a'.repeat(64)}.b`, 'x'.repeat(63)],
  ipv4: ['1.2.3.4', '01.2.3.4', '256.1.1.1', '1.2.3', '255.255.255.255'],
  ipv6: [
    '::',
    '::1',
    '1::',
    '1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:7::',
    '::2:3:4:5:6:7:8',
    '1::3:4:5:6:7:8',
    '1:2::3::4',
  ],
  mixed: [
    '::1.2.3.4',
    '1:2:3:4:5:6:1.2.3.4',
    '1:2:3:4:5::1.2.3.4',
    '1:2:3:4:5:6::1.2.3.4',
    '::01.2.3.4',
    '12345::',
  ],
  regex: ['^a', '(', 'a\\Z', '[', '\\Z'],
  uuid: ['urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8', '6BA7B810-9DAD-11D1-80B4-00C04FD430C8', '6ba7b810'],
  pointer: ['', '/a~0b', '/~2', '#/a%20', '#', '0#', '1/a', '01/a', '-1', '/a/b/'],
};

test('the formats give the same results as ajv-formats', () => {
  const checked = Object.entries(formats.fullFormats).filter(
    ([name, format]) =>
      !['byte', 'email', 'url'].includes(name) && format !== true && !('type' in (format as object)),
  );
  const texts = Object.values(LIKELY).flat();
  const edited = fc
    .tuple(
      fc.constantFrom(...texts),
      fc.nat(40),
      fc.constantFrom('', ...PIECES, '0', '::', '+', 'T', '%', '~'),
    )
    .map(([likely, at, piece]) => likely.slice(0, at) + piece + likely.slice(at + (at % 2)));
  const compare = (value: string): void => {
    for (const [name, format] of checked) {
      const validate = typeof format === 'object' && 'validate' in format ? format.validate : format;
      const expected =
        validate instanceof RegExp ? validate.test(value) : (validate as (text: string) => boolean)(value);
      const verdict = fitsFormat(value, name);
      if (verdict !== expected) expect([name, value, verdict]).toEqual([name, value, expected]);
    }
  };
  for (const value of texts) compare(value);
  fc.assert(fc.property(edited, compare), { numRuns: runs(4_000) });
});

test('email gives the same results as the regular expression that defines it', () => {
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

/** Inputs that make nested repetitions slow: start, repeated middle and end. */
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

describe('validation takes time proportional to the length of the text, for the format', () => {
  test.each(Object.keys(FORMATS).filter((name) => name !== 'regex'))('%s', async (name) => {
    for (const [start, middle, end] of ADVERSARIAL) {
      const of = (size: number) => start + middle.repeat(size / middle.length) + end;
      const [small, large] = [of(5_000), of(500_000)];
      // For a hundred times the text, quadratic time would be ten thousand times as long.
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

test.each([
  ['', true],
  ['AAAA', true],
  ['AAAA+/8=', true],
  ['AA==', true],
  ['A', false],
  ['AA=A', false],
  ['AAAA\nnot base64!', false],
  ['not base64!\nAAAA', false],
])('ToolRegistry validates the whole text of the format byte: %j', async (data, isValid) => {
  const parameters = { type: 'object', properties: { data: { type: 'string', format: 'byte' } } };
  const tool = defineTool({ name: 't', description: 'd', parameters, execute: () => 'stored' });
  const result = await new ToolRegistry().register(tool).execute('t', { data });
  expect(result.isError).toBe(!isValid);
});

test('ToolRegistry refuses 48,000 dots as an email address', async () => {
  const parameters = { type: 'object', properties: { to: { type: 'string', format: 'email' } } };
  const tool = defineTool({ name: 't', description: 'd', parameters, execute: () => 'sent' });
  const result = await new ToolRegistry().register(tool).execute('t', { to: `a@${'.'.repeat(48_000)}@` });
  expect(result.isError).toBe(true);
});
