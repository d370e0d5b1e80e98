import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { portablePattern } from '../../../src/tools/schema/class-validator-rules.js';

/** Strings, because the linter would fix the regular expression literals. */
const SETS = '[[a-z]&&[aeiou]]';
const HALVES = '[😀]';
const LETTERS = '\\p{L}';

test.each([
  [/^[a-z]+$/, '^[a-z]+$'],
  [/^ab$/i, '^[aA][bB]$'],
  [/^[a-f0-9]$/i, '^[a-fA-F0-9]$'],
  [/[Z-b]/i, '[Z-bA-Bz-z]'],
  [/a.c/s, 'a[\\s\\S]c'],
  [/x@y-z/, 'x@y-z'],
  [/[\w\-.]/, '[\\w\\-.]'],
  [/a/g, 'a'],
  [/^\p{L}$/u, '^\\p{L}$'],
])('%s is converted to %s', (expression, source) => {
  expect(portablePattern(expression)?.source).toBe(source);
});

test.each([
  [/^a$/m],
  [/a/y],
  [new RegExp(SETS, 'v')],
  [/ä/i],
  [/(a)\1/i],
  [new RegExp(LETTERS)],
  [new RegExp(HALVES)],
  [/a{,2}/],
])('%s cannot be converted and is left to class-validator', (expression) => {
  expect(portablePattern(expression)).toBeUndefined();
});

test('a pattern that may match half of a surrogate pair is not exact, so class-validator also runs', () => {
  expect(portablePattern(/^.{1,3}$/)).toEqual({ source: '^.{1,3}$', exact: false });
  expect(portablePattern(/^.{1,3}$/u)).toEqual({ source: '^.{1,3}$', exact: true });
});

test('the converted pattern accepts exactly the same texts as with the flag i', () => {
  const atom = fc.constantFrom(
    'a',
    'Z',
    'k',
    '[a-c]',
    '[^x-z]',
    '[A-z]',
    '[Y-b0-9]',
    '\\d',
    '\\w',
    '\\.',
    '(?:ab|C)',
  );
  const expressions = fc
    .array(fc.tuple(atom, fc.constantFrom('', '*', '+', '?', '{2}')), { minLength: 1, maxLength: 5 })
    .map((parts) => new RegExp(`^${parts.map((part) => part.join('')).join('')}$`, 'i'));
  const texts = fc.string({ unit: fc.constantFrom(...'aAbBcCkKxXyYzZ019._[^`{ſK'), maxLength: 6 });
  fc.assert(
    fc.property(expressions, fc.array(texts, { minLength: 5, maxLength: 5 }), (expression, samples) => {
      const source = portablePattern(expression)?.source ?? '(?!)';
      for (const text of samples)
        expect([text, new RegExp(source, 'u').test(text)]).toEqual([text, expression.test(text)]);
    }),
  );
});
