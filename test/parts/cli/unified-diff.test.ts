import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { unifiedDiff } from '../../../src/dev/cli/generate-command.js';

test('unifiedDiff shows removed and added lines, with three lines around them', () => {
  const before = 'a\nb\nc\nd\ne\nf\ng\nh\n';
  const after = 'a\nb\nc\nd\nE\nf\ng\nh\nnew\n';
  expect(unifiedDiff({ path: 'x.ts', before, after })).toBe(
    '--- x.ts\n+++ x.ts (generated now)\n@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n+new\n',
  );
});

test('unifiedDiff shows a last line without a line break', () => {
  expect(unifiedDiff({ path: 'x', before: '{}', after: '{"a": 1}' })).toBe(
    '--- x\n+++ x (generated now)\n@@ -1,1 +1,1 @@\n-{}\n+{"a": 1}\n',
  );
});

test('unifiedDiff shows two distant changes as two hunks with correct line numbers', () => {
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`);
  const after = lines.map((line, index) => (index === 1 || index === 25 ? 'new' : line));
  const diff = unifiedDiff({ path: 'x', before: `${lines.join('\n')}\n`, after: `${after.join('\n')}\n` });
  expect(diff.match(/^@@.*@@$/gm)).toEqual(['@@ -1,5 +1,5 @@', '@@ -23,7 +23,7 @@']);
});

test('unifiedDiff, applied to the old text, gives the new text', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 14 })
    .map((lines) => lines.map((line) => `${line}\n`).join(''));
  fc.assert(
    fc.property(text, text, (before, after) => {
      expect(apply(before, unifiedDiff({ path: 'x', before, after }))).toBe(after);
    }),
  );
});

function apply(before: string, diff: string): string {
  const lines = before.split('\n').slice(0, -1);
  const result: string[] = [];
  let at = 0;
  for (const line of diff.split('\n').slice(2, -1)) {
    const hunk = /^@@ -(\d+),/.exec(line);
    if (hunk) while (at < Number(hunk[1]) - 1) result.push(lines[at++] ?? '');
    else if (line.startsWith('+')) result.push(line.slice(1));
    else {
      if (line.startsWith(' ')) result.push(lines[at] ?? '');
      at += 1;
    }
  }
  return [...result, ...lines.slice(at)].map((line) => `${line}\n`).join('');
}
