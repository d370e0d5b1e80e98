import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const COMMAND = resolve('dist/src/cli/main.js');

let folder: string;
beforeAll(() => {
  if (!existsSync(COMMAND)) throw new Error(`${COMMAND} is missing: run \`npm run build\` first`);
  folder = mkdtempSync(join(tmpdir(), 'toolwright-list-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('toolwright list ends although the module that it listed keeps something open', () => {
  const code = `
    export const one = { name: 'one', description: 'One', parameters: { type: 'object' }, execute: () => 1 };
    setInterval(() => {}, 60_000);`;
  writeFileSync(join(folder, 'open.mjs'), code);
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { status, stdout } = spawnSync(process.execPath, [COMMAND, 'list', 'open.mjs'], {
    cwd: folder,
    env,
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^one +- +explicit/m);
}, 30_000);
