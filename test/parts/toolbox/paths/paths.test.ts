import { posix } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import picomatch from 'picomatch';
import { folderPath } from '../../../../src/toolbox/paths/folder-path.js';
import { globMatcher } from '../../../../src/toolbox/paths/glob.js';

const name = fc.oneof(
  fc.constantFrom('..', '.', '', 'a', 'b.ts', '.git', '...', '~', 'C:', 'a b', '\\', 'nul'),
  fc.string({ maxLength: 4 }),
);
const written = fc
  .tuple(fc.constantFrom('', '/', '//', './', '/base/', '/base', '/bases/'), fc.array(name))
  .map(([start, names]) => start + names.join('/'));

describe('folderPath', () => {
  test('gives the same path as the path module, and refuses paths outside of the root', () => {
    fc.assert(
      fc.property(written, (given) => {
        const read = folderPath(given, { root: '/base', platform: 'linux' });
        const absolute = posix.resolve('/base', given);
        const isWithin = absolute === '/base' || absolute.startsWith('/base/');
        if (read.ok) {
          expect(posix.resolve('/base', read.path)).toBe(absolute);
          expect(isWithin).toBe(true);
          expect(read.path.split('/')).not.toContain('..');
        }
        // A path that leaves the root and returns is also refused, and so are invisible characters.
        if (!isWithin) expect(read.ok).toBe(false);
      }),
    );
  });

  test.each([
    ['ab:stream', 'ab:stream'],
    ['NUL.txt', 'NUL.txt'],
    ['com1', 'com1'],
    ['dir\\con', 'con'],
    ['a.', 'a.'],
    ['a /b', 'a '],
    ['what?', 'what?'],
  ])('refuses %j on Windows, where it has a special meaning', (given, segment) => {
    expect(folderPath(given, { platform: 'win32' })).toEqual({
      ok: false,
      problem: `'${segment}' is not a valid file name on Windows`,
    });
  });

  test('treats backslashes and drives as Windows does', () => {
    const frame = { root: 'C:\\Work', platform: 'win32' } as const;
    expect(folderPath('src\\a.ts', frame)).toEqual({ ok: true, path: 'src/a.ts' });
    expect(folderPath('c:\\work\\src', frame)).toEqual({ ok: true, path: 'src' });
    expect(folderPath('D:\\work\\src', frame).ok).toBe(false);
    expect(folderPath('..\\x', frame).ok).toBe(false);
    expect(folderPath('C:x', frame).ok).toBe(false);
  });

  test('refuses invisible characters and paths that are too long', () => {
    for (const unseen of ['a\u202etxt.exe', 'a\u200bb', 'a\nb', 'a\u0000', '\ud800', 'a\u2066b'])
      expect(folderPath(unseen, {}).ok).toBe(false);
    expect(folderPath('x'.repeat(5_000), {}).ok).toBe(false);
  });
});

describe('globMatcher', () => {
  const piece = fc.constantFrom('a', 'b', '*', '?', '.', '[ab]', '[^a]', '[a-c]', 'ab', '{a,b}', '{a*,?}');
  const pattern = fc
    .array(
      fc.oneof(
        { weight: 1, arbitrary: fc.constant('**') },
        { weight: 4, arbitrary: fc.array(piece, { minLength: 1, maxLength: 4 }).map((all) => all.join('')) },
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((parts) => parts.join('/'))
    // In these cases the two differ by design, or picomatch is in doubt.
    .filter(
      (one) =>
        !one.endsWith('/**') &&
        !/(^|[/{,])\.|\*\*.|[^/]\*\*|\*\?|\?\*/.test(one.replaceAll('**/', '').replace(/^\*\*$/, '')),
    );
  const path = fc
    .array(
      fc
        .array(fc.constantFrom('a', 'b', 'c', 'ab', 'x'), { minLength: 1, maxLength: 3 })
        .map((all) => all.join('')),
      { minLength: 1, maxLength: 4 },
    )
    .map((names) => names.join('/'));

  test('matches the same paths as picomatch', () => {
    fc.assert(
      fc.property(pattern, path, (glob, given) => {
        expect([glob, given, globMatcher(glob)(given)]).toEqual([
          glob,
          given,
          picomatch(glob, { dot: true })(given),
        ]);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['**', '.', true],
    ['src/**', 'src', true],
    ['src/', 'src', true],
    ['src/', 'src/a/b', true],
    ['{a,b}/', 'b/c', true],
    ['src/', 'srcs', false],
    ['src/**', 'srcs/a', false],
    ['**/.env*', 'a/.env.local', true],
    ['*', '.env', true],
    ['a\\*b', 'a*b', true],
    ['a\\*b', 'axb', false],
    ['[', '[', true],
    ['{a', '{a', true],
    ['{a}', '{a}', true],
    ['{a,{b,c}d}', 'cd', true],
    ['[]a]', ']', true],
  ])('the pattern %j with the path %j gives %j', (glob, given, fits) => {
    expect(globMatcher(glob)(given)).toBe(fits);
  });

  test('treats a reversed range in a set as literal characters', () => {
    expect(['😀', 'ﬀ', 'a'].map(globMatcher('[😀-ﬀa]'))).toEqual([false, false, true]);
  });

  test('matches long patterns, and refuses patterns with too many alternatives or characters', () => {
    const matches = globMatcher(`${'*a'.repeat(200)}b`);
    expect(matches('a'.repeat(4_000))).toBe(false);
    expect(globMatcher(`${'**/a/'.repeat(90)}b`)('a/'.repeat(2_000))).toBe(false);
    expect(() => globMatcher('{a,b}'.repeat(12))).toThrow('more than 256 alternatives');
    expect(() => globMatcher('x'.repeat(501))).toThrow('too long');
  });
});
