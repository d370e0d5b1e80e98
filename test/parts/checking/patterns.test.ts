import { expect, test } from '@jest/globals';
import { patternGrowth } from '../../../src/tools/checking/patterns.js';

test.each([
  ...['^(a+)+$', '^(a|a)*$', '^(\\w+\\s?)+$', '^(([a-z])+.)+[A-Z]([a-z])+$', '^(?:(?:a|b)*c?)*$'],
  ...[
    '^(\\s*\\w*)*$',
    '(?:\\s*,?\\s*)*;',
    '^((ab)*)+$',
    '^(?:\\.?\\d+)+$',
    '^(?:\\p{Script=Greek}|\\p{L})*$',
  ],
  ...['^(?:<!--[\\s\\S]*?-->|\\s|[^<])*>', '^[\\w+-]+(\\.[\\w+-]+)*@(\\w+-?)+\\.com$', '^((a|a)+b)*$'],
])('%s takes exponential time', (pattern) => {
  expect(patternGrowth(pattern)).toBe('exponential');
});

test.each([
  ...['\\s+$', 'a+b', '^a*a*$', '\\d+-\\d+', '^.*foo.*bar$', 'foo.*bar', '^\\s*(.*?)\\s*$', '^\\d+\\s*\\d+$'],
  ...['^[\\w.]+[\\w-]*@x$', '([^,]*,)*$', '<[^>]*>', '^.+@.+\\..+$', '^\\d+\\.?\\d*$', '^(?:.*?,){3}P'],
  // Look-arounds that run again at each position.
  ...['x(?=.*y)', '^(?:x(?=.*))*$', '^a*(?=a*b)'],
])('%s takes polynomial time', (pattern) => {
  expect(patternGrowth(pattern)).toBe('polynomial');
});

test.each([
  ...['^[a-z]+$', '^[a-z0-9]+(?:-[a-z0-9]+)*$', '^(\\d+,)*\\d+$', '^/(?:[^/]+/)*[^/]*$', '^\\p{L}+$'],
  ...['^(?:\\d{1,3}\\.){3}\\d{1,3}$', '^(\\+?\\d{1,3}[- ]?)?(\\d[- ]?){6,14}$', '\\.pdf$', '^https?://'],
  ...[
    '^[^@\\s]+@[^@\\s.]+(?:\\.[^@\\s.]+)+$',
    '^(?=.*[A-Z])(?=.*[a-z])(?=.*\\d).{8,64}$',
    '^(?!.*--)[a-z-]+$',
  ],
  ...['^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}$', '^"(?:[^"\\\\]|\\\\.)*"$', '^.{1,255}$'],
  ...['^P(?!$)(\\d+Y)?(\\d+M)?(\\d+W)?(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+S)?)?$', '[a-z]{2,30}-x', 'a?b'],
  // Without an end anchor, there is no backtracking.
  ...['(a+)*', '^(\\w+\\s?)+', '^a*b*', 'function \\w+\\('],
])('%s takes linear time', (pattern) => {
  expect(patternGrowth(pattern)).toBe('linear');
});

test.each([
  ...[
    '^(a?){30}a{30}$',
    `^${'a?'.repeat(30)}${'a'.repeat(30)}$`,
    `^${'(a|a)'.repeat(26)}$`,
    '(a{1,30}){1,30}b',
  ],
  ...['^(["\'])[^"\']*\\1$', '(?<=a+)b', 'a*'.repeat(300), `${'('.repeat(600)}a${')*'.repeat(600)}`],
])('patternGrowth does not report %s as linear', (pattern) => {
  expect(patternGrowth(pattern)).not.toBe('linear');
});

test('letters of both cases overlap if the pattern ignores case', () => {
  expect(patternGrowth('^(a|A)*$')).toBe('linear');
  expect(patternGrowth('^(a|A)*$', 'iu')).toBe('exponential');
});
