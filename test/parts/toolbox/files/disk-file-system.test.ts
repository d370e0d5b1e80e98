import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolRegistry } from 'toolwright';
import { DiskFileSystem, type FileSystemError, fileTools } from 'toolwright/toolbox/files';
import { buildProgram } from '../../../processes/build-program.js';
import { diskToolbox, newFolder, textsOf } from './folders.js';

const TOOLS: readonly (readonly [string, (path: string) => object])[] = [
  ['read_file', (path) => ({ path })],
  ['read_file', (path) => ({ path, fromByte: 0 })],
  ['list_files', (path) => ({ path })],
  ['find_files', (path) => ({ pattern: '**', path, withIgnored: true })],
  ['search_files', (path) => ({ text: 'secret', path, withIgnored: true })],
  ['write_file', (path) => ({ path, text: 'mine' })],
  ['edit_file', (path) => ({ path, edits: [{ oldText: 'secret', newText: 'mine' }] })],
  ['patch_files', (path) => ({ patch: `--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-secret\n+mine\n` })],
  ['move_file', (path) => ({ from: path, to: 'moved' })],
  ['move_file', (path) => ({ from: 'inside.txt', to: path })],
  ['delete_file', (path) => ({ path, withContents: true })],
];

/** A folder with links of every kind that lead out, and a folder outside that must not change. */
function trap(): { readonly root: string; readonly outside: string } {
  const outside = newFolder({ 'secret.txt': 'secret\n', 'deep/secret.txt': 'secret\n' });
  const root = newFolder({ 'inside.txt': 'fine\n', 'dir/inside.txt': 'fine\n' });
  symlinkSync(outside, join(root, 'out'));
  symlinkSync(join(outside, 'secret.txt'), join(root, 'file-out'));
  symlinkSync(`../../../../../../../../${outside}`, join(root, 'dir', 'relative-out'));
  symlinkSync('..', join(root, 'dir', 'up'));
  symlinkSync('loop', join(root, 'loop'));
  symlinkSync('inside.txt', join(root, 'file-in'));
  symlinkSync('/proc/self/root', join(root, 'system'));
  return { root, outside };
}

describe('DiskFileSystem', () => {
  test.each(TOOLS)('%s never leaves the folder, for any path', async (tool, args) => {
    const { root, outside } = trap();
    const { call } = diskToolbox(root);
    const before = textsOf(outside);
    const ways = [
      '..',
      '../secret.txt',
      `../${outside.split('/').at(-1)}/secret.txt`,
      outside,
      `${outside}/secret.txt`,
      `${root}/../${outside.split('/').at(-1)}/secret.txt`,
      'out',
      'out/secret.txt',
      'out/deep/secret.txt',
      'out/new.txt',
      'out/../secret.txt',
      'file-out',
      'file-out/x',
      'dir/relative-out/secret.txt',
      'dir/up/../secret.txt',
      'dir/up/out/secret.txt',
      'loop/x',
      `system${outside}/secret.txt`,
      'OUT/secret.txt',
      'ou\u0074/./secret.txt',
      'out\u200b/secret.txt',
      '/proc/self/cwd/../secret.txt',
      `/proc/self/root${outside}/secret.txt`,
      '~/secret.txt',
      'dir/../../secret.txt',
      './/out//secret.txt',
    ];
    for (const way of ways) {
      const { forLLM, forUser = '' } = await call(tool, args(way));
      expect([way, (forLLM + forUser).replaceAll("'secret'", '').includes('\tsecret')]).toEqual([way, false]);
      expect([way, textsOf(outside)]).toEqual([way, before]);
    }
  });

  test('reports the target of a link if it is within the folder', async () => {
    const { root } = trap();
    const { call } = diskToolbox(root);
    const told = async (path: string): Promise<string> => (await call('read_file', { path })).forLLM;
    expect(await told('file-in')).toBe(
      "'file-in' is a link, and links are not followed: use its target 'inside.txt'.",
    );
    expect(await told('dir/up/inside.txt')).toBe(
      "'dir/up' is a link, and links are not followed: use its target '.'.",
    );
    expect(await told('file-out')).toBe(
      "'file-out' is a link, and links are not followed: its target is outside of the folder.",
    );
  });

  test('removes a link but not its target', async () => {
    const { root, outside } = trap();
    const { call } = diskToolbox(root);
    expect((await call('delete_file', { path: 'out', withContents: true })).isError).toBe(false);
    expect((await call('delete_file', { path: 'dir', withContents: true })).isError).toBe(false);
    expect(existsSync(join(root, 'out'))).toBe(false);
    expect(textsOf(outside)).toEqual({ 'secret.txt': 'secret\n', 'deep/secret.txt': 'secret\n' });
  });

  test('does not change the other names of a hard-linked file', async () => {
    const { root, outside } = trap();
    linkSync(join(outside, 'secret.txt'), join(root, 'shared.txt'));
    const { call } = diskToolbox(root);
    await call('edit_file', { path: 'shared.txt', edits: [{ oldText: 'secret', newText: 'mine' }] });
    expect(readFileSync(join(root, 'shared.txt'), 'utf8')).toBe('mine\n');
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('secret\n');
  });

  test('opens neither pipes nor devices', async () => {
    const root = newFolder({ 'a.txt': 'text' });
    execFileSync('mkfifo', [join(root, 'pipe')]);
    const { call } = diskToolbox(root);
    for (const [tool, args] of TOOLS.slice(0, 7)) {
      const { forLLM } = await call(tool, args('pipe'));
      expect([
        tool,
        /neither a file nor a folder|No line matches|No file matches|device or pipe/.test(forLLM),
      ]).toEqual([tool, true]);
    }
    const devices = new DiskFileSystem({ root: '/dev' });
    await expect(devices.read('null')).rejects.toMatchObject({ problem: 'kind' });
    await expect(devices.write('null', new Uint8Array([1]))).rejects.toMatchObject({ problem: 'kind' });
  });

  test('preserves the mode of a file, and creates a new file with the default mode', async () => {
    const root = newFolder({ 'run.sh': 'old' });
    chmodSync(join(root, 'run.sh'), 0o750);
    const files = new DiskFileSystem({ root });
    await files.write('run.sh', Buffer.from('new'));
    await files.write('other.txt', Buffer.from('new'));
    writeFileSync(join(root, 'usual.txt'), '');
    const modeOf = (name: string): number => statSync(join(root, name)).mode & 0o777;
    expect([modeOf('run.sh'), modeOf('other.txt')]).toEqual([0o750, modeOf('usual.txt')]);
  });

  test('reports an error of the system without the path of the folder', async () => {
    const root = newFolder({ 'a/b.txt': '' });
    const files = new DiskFileSystem({ root });
    const long = 'x'.repeat(300);
    const error = await files.write(`a/${long}`, new Uint8Array()).catch((thrown: FileSystemError) => thrown);
    expect(error).toMatchObject({ name: 'FileSystemError', problem: 'failed' });
    expect(String(error)).toContain('its name is too long');
    expect(String(error)).not.toContain(root);
  });

  test('every tool reports the path whose name is too long', async () => {
    const tools = new ToolRegistry().register(...fileTools({ root: newFolder({ 'a.txt': 'a' }) }));
    const path = 'x'.repeat(300);
    for (const [tool, args] of [
      ['read_file', { path }],
      ['read_file', { path, fromByte: 0 }],
      ['list_files', { path }],
      ['find_files', { path, pattern: '*' }],
      ['search_files', { path, text: 'a' }],
      ['write_file', { path, text: 'a' }],
      ['edit_file', { path, edits: [{ oldText: 'a', newText: 'b' }] }],
      ['move_file', { from: path, to: 'b' }],
      ['move_file', { from: 'a.txt', to: path }],
      ['delete_file', { path }],
    ] as const) {
      const { isError, forLLM } = await tools.execute(tool, args);
      expect([tool, isError, forLLM]).toEqual([
        tool,
        true,
        `Nothing was done with '${path}': its name is too long.`,
      ]);
    }
  });

  test('throws if root is not an existing folder with an absolute path', () => {
    expect(() => new DiskFileSystem({ root: 'relative' })).toThrow('the absolute path of a folder');
    expect(() => new DiskFileSystem({ root: '/nowhere/at/all' })).toThrow(
      'root is /nowhere/at/all, which does not exist',
    );
    const root = newFolder({ 'a.txt': '' });
    expect(() => new DiskFileSystem({ root: join(root, 'a.txt') })).toThrow('which is not a folder');
    symlinkSync(root, `${root}/itself`);
    expect(() => new DiskFileSystem({ root: `${root}/itself` })).not.toThrow();
  });

  test('serializes changes of a file and loses none', async () => {
    const root = newFolder({ 'a.txt': '' });
    const files = new DiskFileSystem({ root });
    const append = async (text: string): Promise<void> => {
      for (;;) {
        const { bytes, stamp } = await files.read('a.txt');
        const done = await files
          .write('a.txt', Buffer.concat([bytes, Buffer.from(text)]), { replaces: { stamp } })
          .catch((error: FileSystemError) => error.problem);
        if (done !== 'changed') return;
      }
    };
    await Promise.all(Array.from({ length: 20 }, (_, index) => append(`${index};`)));
    const found = readFileSync(join(root, 'a.txt'), 'utf8').split(';').filter(Boolean).map(Number);
    expect(found.sort((one, other) => one - other)).toEqual(Array.from({ length: 20 }, (_, index) => index));
  });

  test('leaves no open file descriptors and no temporary files', async () => {
    const { root } = trap();
    const { call } = diskToolbox(root);
    const open = (): number => readdirSync('/proc/self/fd').length;
    await call('list_files', {});
    const before = open();
    for (const [tool, args] of TOOLS)
      for (const way of ['inside.txt', 'dir/new.txt', 'out/x', 'nowhere/x/y']) await call(tool, args(way));
    expect(open()).toBe(before);
    expect(Object.keys(textsOf(root)).filter((path) => path.endsWith('.tmp'))).toEqual([]);
  });
});

describe('a write that is killed', () => {
  const program = join(import.meta.dirname, 'killed-write-program.mjs');
  const module = buildProgram('test/parts/toolbox/files/disk-module.ts');
  afterAll(module.remove);

  test('leaves either the old or the new file, at whichever step it is killed', async () => {
    const seen: string[] = [];
    for (let step = 1; ; step += 1) {
      const root = newFolder({ 'a.txt': 'old' });
      const child = spawn(process.execPath, [program, module.file, root, String(step)], { stdio: 'inherit' });
      const [code, signal] = await once(child, 'exit');
      seen.push(readFileSync(join(root, 'a.txt'), 'utf8'));
      if (signal === null) {
        expect([code, seen.at(-1)]).toEqual([0, 'new']);
        break;
      }
      expect(signal).toBe('SIGKILL');
    }
    // Exactly one step replaces the old file.
    const first = seen.indexOf('new');
    expect(first).toBeGreaterThan(8);
    expect(seen).toEqual(seen.map((_, step) => (step < first ? 'old' : 'new')));
  });
});

describe('a process that swaps folders and links', () => {
  const program = join(import.meta.dirname, 'swapping-program.mjs');

  test('never makes the tools read or write outside the folder', async () => {
    const outside = newFolder({ 'data.txt': 'secret\n' });
    const root = newFolder({ 'a/b/data.txt': 'inside\n', 'a/c.txt': 'inside\n' });
    const { call } = diskToolbox(root);
    const child = spawn(process.execPath, [program, root, outside], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    const counts = { inside: 0, refused: 0 };
    try {
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...TOOLS),
          fc.constantFrom('a/b/data.txt', 'a/b/new.txt', 'a/b'),
          async ([tool, args], path) => {
            const { forLLM, isError } = await call(tool, args(path));
            expect(forLLM).not.toMatch(/\d[\t:] ?secret/);
            expect(forLLM).not.toContain('is a folder, not a folder');
            counts[isError ? 'refused' : 'inside'] += 1;
          },
        ),
        { numRuns: 600 },
      );
    } finally {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    expect(textsOf(outside)).toEqual({ 'data.txt': 'secret\n' });
    expect(counts.inside).toBeGreaterThan(0);
    expect(counts.refused).toBeGreaterThan(0);
  });
});
