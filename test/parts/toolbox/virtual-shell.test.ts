import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { DiskFileSystem, MemoryFileSystem } from 'toolwright/toolbox/files';
import { Permissions } from 'toolwright/toolbox/permissions';
import { shellTools } from 'toolwright/toolbox/shell';
import { virtualShell } from 'toolwright/toolbox/virtual-shell';
import { newFolder, textsOf } from './files/folders.js';

const FILES = { 'a.txt': 'b\na\nc\n', 'dir/b.txt': 'two\n', '.env': 'S3CRET\n', 'vault/key': 'S3CRET\n' };

/** The path of the folder for commands. */
const WORKING_FOLDER = '/work';

function shellOver(files: MemoryFileSystem | DiskFileSystem, vault = 'vault/**') {
  const permissions = new Permissions({
    mode: 'auto',
    rules: [
      { decision: 'deny', path: '**/.env*' },
      { decision: 'deny', path: vault },
    ],
  });
  const shell = virtualShell({ files, ...permissions.closedPaths() });
  const tools = new ToolRegistry({ policy: permissions.policy }).register(...shellTools(shell));
  return async (command: string, args = {}): Promise<string> =>
    (await tools.execute('run_command', { command, ...args })).forLLM;
}

test.each([
  ['on disk', () => new DiskFileSystem({ root: newFolder(FILES) })],
  ['in memory', () => new MemoryFileSystem(FILES)],
])('virtualShell reads and changes the files of a file system: %s', async (_where, make) => {
  const run = shellOver(make());
  expect(await run('sort a.txt | head -2; pwd; cat dir/*.txt')).toMatch(/^a\nb\n\/work\ntwo\n/);
  expect(
    await run(
      'mkdir -p new/deep && echo x > new/deep/f && cp -r new copy && mv a.txt z && rm -r dir; ls; cat copy/deep/f',
    ),
  ).toMatch(/copy\nnew\nvault\nz\nx\n/);
  expect(await run('cat b.txt', { folder: 'dir' })).toContain('exit code 1');
  expect(await run('cat nowhere; mkdir empty; ls -d empty')).toContain('empty\n');
});

test('virtualShell closes denied paths with an absolute path, on this machine or as commands see it', async () => {
  const root = newFolder(FILES);
  for (const [files, vault] of [
    [new DiskFileSystem({ root }), `${root}/vault/**`],
    [new MemoryFileSystem(FILES), `${WORKING_FOLDER}/vault/`],
  ] as const) {
    const run = shellOver(files, vault);
    expect(await run('cat vault/key')).toContain('was refused');
    const output = await run('x=vault; cat $x/key a.txt');
    expect(output).toContain('b\na');
    expect(output).not.toContain('S3CRET');
  }
});

test('virtualShell starts no program and accesses nothing outside of the file system or denied', async () => {
  const outside = newFolder({ 'secret.txt': 'S3CRET\n' });
  const folder = newFolder(FILES);
  const run = shellOver(new DiskFileSystem({ root: folder }));
  for (const command of [
    `x=${outside}; cat $x/secret.txt ../../..$x/secret.txt /proc/1/environ /etc/passwd`,
    'for x in .e*v vault/key vault/*; do cat $x; done; cp -r vault y; mv vault y; cat y/key; rm -rf vault',
    `ln -s ${outside} x; cat x/secret.txt; touch ${outside}/new`,
    'x=1; node -e 1; python3 -c 1; git status; curl http://127.0.0.1:1; bwrap true',
    'x=.git; mkdir -p $x/hooks; echo evil > $x/hooks/pre-commit; echo evil > .npmrc',
  ])
    expect([command, (await run(command)).includes('S3CRET')]).toEqual([command, false]);
  expect(textsOf(outside)).toEqual({ 'secret.txt': 'S3CRET\n' });
  expect(textsOf(folder)).toEqual(FILES);
  expect(await run('x=node; $x -e 1')).toContain('not found');
  expect(textsOf(join(folder, 'dir'))).toEqual({ 'b.txt': 'two\n' });
});

test('virtualShell ends a command at its time limit', async () => {
  const run = shellOver(new MemoryFileSystem(FILES));
  expect(await run('sleep 600; echo x', { seconds: 1 })).toMatch(/took too long/);
});
