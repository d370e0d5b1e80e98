import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolRegistry } from 'toolwright';
import { fileTools, MemoryFileSystem, type TextEdit } from 'toolwright/toolbox/files';

const word = fc.constantFrom('a', 'b', 'ab', ' ', '\n', '$&', 'é', '€', '𝄞', 'aa');
const text = fc.array(word, { maxLength: 40 }).map((words) => words.join(''));

/** An edit of the source, mostly with an `oldText` that occurs in it. */
function editOf(source: string): fc.Arbitrary<TextEdit> {
  const part = fc
    .tuple(fc.nat(source.length), fc.integer({ min: 1, max: 6 }))
    .map(([start, length]) => source.slice(start, start + length));
  const oldText = fc
    .oneof({ weight: 5, arbitrary: part }, { weight: 1, arbitrary: text })
    .filter((one) => one !== '');
  return fc.record({ oldText, newText: text, all: fc.boolean() });
}

const plan = text.chain((source) =>
  fc.tuple(fc.constant(source), fc.array(editOf(source), { minLength: 1, maxLength: 5 })),
);

/** Assigns every character to the edit that replaces it; `undefined` if the edits cannot be made. */
function reference(source: string, edits: readonly TextEdit[]): string | undefined {
  const taken: ({ readonly edit: number; readonly isStart: boolean } | undefined)[] = Array.from(
    { length: source.length },
    () => undefined,
  );
  for (const [edit, { oldText, all }] of edits.entries()) {
    const starts = Array.from({ length: source.length }, (_, start) => start).filter((start) =>
      source.startsWith(oldText, start),
    );
    if (starts.length === 0 || (starts.length > 1 && !all)) return undefined;
    let end = 0;
    for (const start of starts) {
      if (start < end) continue;
      end = start + oldText.length;
      for (let at = start; at < end; at += 1) {
        if (taken[at] !== undefined) return undefined;
        taken[at] = { edit, isStart: at === start };
      }
    }
  }
  const parts = taken.map((take, at) => {
    if (take === undefined) return source[at];
    return take.isStart ? edits[take.edit]?.newText : '';
  });
  const edited = parts.join('');
  return edited === source || !edited.isWellFormed() ? undefined : edited;
}

describe('edit_file', () => {
  test('gives the same text as a reference implementation, or changes nothing if that refuses the edits', async () => {
    const counts = { made: 0, refused: 0 };
    const files = new MemoryFileSystem();
    const tools = new ToolRegistry().register(...fileTools(files));
    await fc.assert(
      fc.asyncProperty(plan, async ([source, edits]) => {
        await files.write('a.txt', Buffer.from(source));
        const { isError } = await tools.execute('edit_file', { path: 'a.txt', edits });
        const expected = reference(source, edits);
        expect([isError, files.texts()]).toEqual([expected === undefined, { 'a.txt': expected ?? source }]);
        counts[isError ? 'refused' : 'made'] += 1;
      }),
      { numRuns: 1_000 },
    );
    expect(counts.made).toBeGreaterThan(100);
    expect(counts.refused).toBeGreaterThan(100);
  });
});

describe('patch_files', () => {
  test('a patch and its reverse restore the original text', async () => {
    const line = fc.constantFrom('one', 'two', 'three', '', '  four');
    const lines = fc.array(line, { minLength: 1, maxLength: 30 }).map((all) => `${all.join('\n')}\n`);
    const { createTwoFilesPatch } = await import('diff');
    await fc.assert(
      fc.asyncProperty(lines, lines, async (before, after) => {
        fc.pre(before !== after);
        const files = new MemoryFileSystem({ 'a.txt': before });
        const tools = new ToolRegistry().register(...fileTools(files));
        const there = await tools.execute('patch_files', {
          patch: createTwoFilesPatch('a/a.txt', 'b/a.txt', before, after),
        });
        expect([there.isError, files.texts()]).toEqual([false, { 'a.txt': after }]);
        await tools.execute('patch_files', { patch: createTwoFilesPatch('a.txt', 'a.txt', after, before) });
        expect(files.texts()).toEqual({ 'a.txt': before });
      }),
      { numRuns: 100 },
    );
  });
});
