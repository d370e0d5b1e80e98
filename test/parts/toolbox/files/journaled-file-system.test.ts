import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolRegistry } from 'toolwright';
import {
  DiskFileSystem,
  type FileInfo,
  type FileSystem,
  fileTools,
  JournaledFileSystem,
  type JournalOptions,
  MemoryFileSystem,
} from 'toolwright/toolbox/files';
import { newFolder } from './folders.js';

/** All files of a folder with their modes, and its folders. */
function treeOf(folder: string, within = ''): Readonly<Record<string, string>> {
  const tree: Record<string, string> = {};
  for (const entry of readdirSync(join(folder, within), { withFileTypes: true })) {
    const path = join(within, entry.name);
    const mode = (statSync(join(folder, path)).mode & 0o777).toString(8);
    if (entry.isDirectory()) Object.assign(tree, { [`${path}/`]: '' }, treeOf(folder, path));
    else tree[path] = `${mode} ${readFileSync(join(folder, path), 'latin1')}`;
  }
  return tree;
}

function journaled(files: FileSystem, options?: JournalOptions) {
  const journal = new JournaledFileSystem(files, options);
  const tools = new ToolRegistry().register(...fileTools(journal));
  return { journal, call: (tool: string, args: object) => tools.execute(tool, args) };
}

const NAMES = ['a', 'b', 'd/c', 'd/e/f', 'new/deep/g'];
const name = fc.constantFrom(...NAMES);
const folder = fc.constantFrom('d', 'd/e', 'h');
const text = fc.constantFrom('', 'one\n', 'one\ntwo\n', 'three');

/** A random call of a file tool, valid or not. */
const step = fc.oneof(
  fc.record({ tool: fc.constant('write'), path: name, text }),
  fc.record({ tool: fc.constant('edit'), path: name, text }),
  fc.record({ tool: fc.constant('patch'), path: name, to: name }),
  fc.record({ tool: fc.constant('move'), path: fc.oneof(name, folder), to: fc.oneof(name, folder) }),
  fc.record({ tool: fc.constant('delete'), path: fc.oneof(name, folder), deep: fc.boolean() }),
);

type Step = { readonly tool: string; readonly path: string } & Readonly<Record<string, unknown>>;

async function take(files: FileSystem, call: ReturnType<typeof journaled>['call'], wanted: Step) {
  const { tool, path, to, deep } = wanted;
  const content = String(wanted.text);
  if (tool === 'move') return call('move_file', { from: path, to });
  if (tool === 'delete') return call('delete_file', { path, withContents: deep });
  const version = /version (\w{12})/.exec((await call('read_file', { path })).forLLM)?.[1];
  if (tool === 'write') return call('write_file', { path, text: content, ...(version ? { version } : {}) });
  if (tool === 'edit') return call('edit_file', { path, edits: [{ oldText: 'one', newText: content }] });
  // A patch of two files, the second of which may fail.
  const first = (await files.info(path))?.kind === 'file';
  const patch = first
    ? `--- a/${path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n--- /dev/null\n+++ b/${to}x\n@@ -0,0 +1 @@\n+new\n`
    : `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+new\n`;
  return call('patch_files', { patch });
}

describe('JournaledFileSystem', () => {
  test('undo restores the original tree after random changes, even if the journal is reopened in between', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 12 }),
        fc.nat(12),
        fc.nat(12),
        async (steps, opened, undone) => {
          const root = newFolder({ a: 'one\n', 'd/c': 'one\ntwo\n', 'd/e/f': new Uint8Array([0, 255, 1]) });
          chmodSync(join(root, 'd/c'), 0o755);
          mkdirSync(join(root, 'h'));
          const before = treeOf(root);
          const place = { folder: join(newFolder(), 'journal') };
          const disk = new DiskFileSystem({ root });
          let box = journaled(disk, place);
          for (const [index, one] of steps.entries()) {
            if (index === opened) box = journaled(disk, place);
            if (index === undone) await box.journal.undo();
            await take(disk, box.call, one);
          }
          while ((await box.journal.undo()) !== undefined);
          expect(treeOf(root)).toEqual(before);
          expect(box.journal.changes()).toEqual([]);
          expect(readdirSync(join(place.folder, 'contents')).length).toBeLessThanOrEqual(20);
        },
      ),
      { numRuns: 60 },
    );
  }, 120_000);

  test('undo restores the original files in memory', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const memory = new MemoryFileSystem({ a: 'one\n', 'd/c': 'one\ntwo\n', 'd/e/f': 'x' });
        const before = memory.texts();
        const box = journaled(memory);
        for (const one of steps) await take(memory, box.call, one);
        while ((await box.journal.undo()) !== undefined);
        expect(memory.texts()).toEqual(before);
      }),
      { numRuns: 200 },
    );
  });

  test('undoes one call at a time, and a patch of several files as one', async () => {
    const memory = new MemoryFileSystem({ a: '1\n', b: '2\n' });
    const { journal, call } = journaled(memory);
    await call('edit_file', { path: 'a', edits: [{ oldText: '1', newText: '3' }] });
    await call('patch_files', {
      patch: '--- a/a\n+++ b/a\n@@ -1 +1 @@\n-3\n+4\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n',
    });
    expect(journal.changes()).toMatchObject([
      { id: 1, about: 'edit a', paths: ['a'] },
      { id: 2, about: 'patch files', paths: ['a', 'b'] },
    ]);
    expect(await journal.undo()).toMatchObject({ about: 'patch files' });
    expect(memory.texts()).toEqual({ a: '3\n', b: '2\n' });
    expect(await journal.undo()).toMatchObject({ about: 'edit a' });
    expect(memory.texts()).toEqual({ a: '1\n', b: '2\n' });
    expect(await journal.undo()).toBeUndefined();
  });

  test('refuses to undo a change if a file changed since, until that change is forgotten', async () => {
    const root = newFolder({ a: '1\n', b: '2\n' });
    const { journal, call } = journaled(new DiskFileSystem({ root }));
    await call('edit_file', { path: 'a', edits: [{ oldText: '1', newText: '0' }] });
    await call('patch_files', {
      patch: '--- a/a\n+++ b/a\n@@ -1 +1 @@\n-0\n+4\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-2\n+5\n',
    });
    writeFileSync(join(root, 'a'), 'mine\n');
    await expect(journal.undo()).rejects.toThrow("'a' was changed again afterwards");
    expect(treeOf(root)).toMatchObject({
      a: expect.stringContaining('mine'),
      b: expect.stringContaining('5'),
    });
    expect(journal.forget()).toMatchObject({ about: 'patch files' });
    await expect(journal.undo()).rejects.toMatchObject({ problem: 'changed' });
    writeFileSync(join(root, 'a'), '0\n');
    expect(await journal.undo()).toMatchObject({ about: 'edit a' });
  });

  test('refuses to restore a deleted file if another file has its path', async () => {
    const root = newFolder({ a: '1\n' });
    const { journal, call } = journaled(new DiskFileSystem({ root }));
    await call('delete_file', { path: 'a' });
    writeFileSync(join(root, 'a'), 'mine\n');
    await expect(journal.undo()).rejects.toMatchObject({ problem: 'exists' });
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('mine\n');
  });

  test('refuses to restore links and files that are too large', async () => {
    const root = newFolder({ 'd/a': '1\n', big: 'x'.repeat(2_000) });
    symlinkSync('a', join(root, 'd/link'));
    const { journal, call } = journaled(new DiskFileSystem({ root }), { mostBytes: 1_000 });
    await call('delete_file', { path: 'd', withContents: true });
    await expect(journal.undo()).rejects.toThrow('d/link was a link');
    journal.forget();
    await call('delete_file', { path: 'big' });
    await expect(journal.undo()).rejects.toThrow('too large to store: 2000 bytes');
  });

  test('records no change that leaves the files unchanged', async () => {
    const memory = new MemoryFileSystem({ a: '1\n' });
    const { journal, call } = journaled(memory);
    const version = /version (\w{12})/.exec((await call('read_file', { path: 'a' })).forLLM)?.[1];
    await call('write_file', { path: 'a', text: '1\n', version });
    await call('delete_file', { path: 'none' });
    await call('move_file', { from: 'a', to: 'a' });
    expect(journal.changes()).toEqual([]);
  });

  test('forgets the oldest changes and their contents if the journal is too large', async () => {
    const place = join(newFolder(), 'journal');
    const files = new MemoryFileSystem({ a: '0'.repeat(400) });
    const journal = new JournaledFileSystem(files, { folder: place, mostBytes: 2_000 });
    for (let round = 1; round < 20; round += 1)
      await journal.write('a', new TextEncoder().encode(String(round % 10).repeat(400)));
    expect(journal.changes().length).toBeLessThan(8);
    expect(journal.changes().at(-1)?.id).toBe(19);
    expect(readdirSync(join(place, 'contents')).length).toBeLessThan(8);
    while ((await journal.undo()) !== undefined);
    expect(files.texts().a).toMatch(/^1{400}$|^[2-9]{400}$/);
  });

  test('undoes a recorded change that was never made, without changing files', async () => {
    class Hanging extends MemoryFileSystem {
      override write(): Promise<FileInfo> {
        return new Promise(() => {});
      }
    }
    const place = { folder: join(newFolder(), 'journal') };
    const files = new Hanging({ a: '1\n' });
    // Simulates a process that is killed between the journal entry and the change.
    void new JournaledFileSystem(files, place).write('a', new TextEncoder().encode('2\n'));
    while (!existsSync(join(place.folder, 'journal.jsonl'))) await new Promise(setImmediate);
    const again = new JournaledFileSystem(files, place);
    expect(again.changes()).toMatchObject([{ about: 'write a' }]);
    expect(await again.undo()).toMatchObject({ about: 'write a' });
    expect(files.texts()).toEqual({ a: '1\n' });
  });

  test('reads a journal whose last line is truncated, and is not readable by other users', async () => {
    const place = { folder: join(newFolder(), 'journal') };
    const files = new MemoryFileSystem({ a: '1\n' });
    await new JournaledFileSystem(files, place).write('a', new TextEncoder().encode('2\n'));
    const log = join(place.folder, 'journal.jsonl');
    writeFileSync(log, `${readFileSync(log, 'utf8')}{"id":9,"ste`);
    const again = new JournaledFileSystem(files, place);
    expect(again.changes()).toHaveLength(1);
    expect(statSync(place.folder).mode & 0o77).toBe(0);
    expect(statSync(log).mode & 0o77).toBe(0);
    // The next entry must not be appended to the truncated line.
    await again.write('b', new TextEncoder().encode('3\n'));
    const third = new JournaledFileSystem(files, place);
    expect(third.changes()).toHaveLength(2);
    while ((await third.undo()) !== undefined);
    expect(files.texts()).toEqual({ a: '1\n' });
  });

  test('refuses a journal folder inside the changed folder, also through links, without creating it', () => {
    const root = newFolder();
    const outside = newFolder();
    symlinkSync(root, join(outside, 'link'));
    const files = new DiskFileSystem({ root });
    const places = [
      root,
      join(root, 'journal'),
      join(root, 'a', '..', 'b', 'c'),
      join(outside, 'link', 'journal'),
    ];
    for (const folder of places)
      expect(() => new JournaledFileSystem(files, { folder })).toThrow('in the changed folder');
    expect(readdirSync(root)).toEqual([]);
    expect(() => new JournaledFileSystem(files, { folder: `${root}-journal` })).not.toThrow();
    rmSync(`${root}-journal`, { recursive: true });
  });

  test('throws for invalid options', () => {
    const files = new MemoryFileSystem();
    expect(() => new JournaledFileSystem(files, { folder: 'here' })).toThrow('absolute path');
    expect(() => new JournaledFileSystem({} as FileSystem)).toThrow('a FileSystem');
    expect(() => new JournaledFileSystem(files, { mostByte: 1 } as JournalOptions)).toThrow('mostBytes');
  });
});
