import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { localName } from '../../../src/surfaces/mcp/client/imported-tool.js';
import { TOOL_NAME } from '../../../src/tools/discovery/define-tool.js';

/** Any character; the unit `binary` would first build a table of all of them. */
const character = fc
  .oneof(
    fc.integer({ min: 0, max: 0xff }),
    fc.integer({ min: 0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((code) => String.fromCodePoint(code));

/** Names as servers send them, and names that look already encoded. */
const names = fc.oneof(
  fc.string({ minLength: 1, maxLength: 40, unit: character }),
  fc.string({
    minLength: 1,
    maxLength: 12,
    unit: fc.constantFrom('_', 'dot', '.', 'x', '2e', 'x2e', '5f', '-', '/', 'a', '_x5f_', '_dot_', '🙂'),
  }),
);
const prefixes = fc.option(fc.stringMatching(/^[a-z][a-z_]{0,8}$/), { nil: undefined });

/** Decodes local names that were not shortened. */
function serverName(local: string, prefix?: string): string {
  const marked = prefix === undefined ? local : local.slice(prefix.length + 1);
  return marked.replace(/_(?:dot|x([0-9a-f]+))_/g, (_mark, code?: string) =>
    code === undefined ? '.' : String.fromCodePoint(Number.parseInt(code, 16)),
  );
}

test('every name becomes a name that providers accept', () => {
  fc.assert(
    fc.property(names, prefixes, (name, prefix) => {
      expect(localName(name, prefix)).toMatch(TOOL_NAME);
    }),
  );
});

test('a local name that was not shortened can be decoded to the name on the server', () => {
  fc.assert(
    fc.property(names, prefixes, (name, prefix) => {
      const local = localName(name, prefix);
      if (local.length < 64) expect(serverName(local, prefix)).toBe(name);
    }),
  );
});

test('different names never become the same local name', () => {
  fc.assert(
    fc.property(names, names, (one, other) => {
      fc.pre(one !== other);
      expect(localName(one)).not.toBe(localName(other));
    }),
  );
});

test.each([
  ['read_file', undefined, 'read_file'],
  ['read_file', 'files', 'files_read_file'],
  ['browser.open', undefined, 'browser_dot_open'],
  ['browser_dot_open', undefined, 'browser_x5f_dot_open'],
  ['2fa', undefined, '_x32_fa'],
  ['2fa', 'auth', 'auth_2fa'],
  ['a b/c', undefined, 'a_x20_b_x2f_c'],
])('%s with the prefix %s becomes %s', (name, prefix, local) => {
  expect(localName(name, prefix)).toBe(local);
});

test('long names that differ only at the end stay different, and equal names stay equal', () => {
  const [one, other] = [`${'long_'.repeat(15)}a`, `${'long_'.repeat(15)}b`];
  expect(localName(one)).not.toBe(localName(other));
  expect(localName(one)).toBe(localName(one));
  expect(localName(one)).toHaveLength(64);
});
