import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { builtFile } from '../processes/built-file.js';
import { runNode } from '../processes/run-node.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-list-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a build leaves the command executable', () => {
  expect(() => accessSync(builtFile('dist/src/dev/cli/main.js'), constants.X_OK)).not.toThrow();
});

test('toolwright list exits even if the listed module keeps a timer', () => {
  const code = `
    export const one = { name: 'one', description: 'One', parameters: { type: 'object' }, execute: () => 1 };
    setInterval(() => {}, 1_000_000);`;
  writeFileSync(join(folder, 'open.mjs'), code);
  const { exitCode, stdout } = runNode([builtFile('dist/src/dev/cli/main.js'), 'list', 'open.mjs'], {
    folder,
  });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^one +- +explicit/m);
});

test('toolwright exits with 0 if the reader of its output closes the pipe', () => {
  const line = '{ "$0" "$1" list --help; echo "ended with $?" >&2; } | exec 0<&-';
  const { stderr } = spawnSync('sh', ['-c', line, process.execPath, builtFile('dist/src/dev/cli/main.js')], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(stderr).toBe('ended with 0\n');
});
