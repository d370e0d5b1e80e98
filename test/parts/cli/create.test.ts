import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runNode } from '../../processes/run-node.js';
import { ROOT } from '../../structure/repository.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-create-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const create = (...args: readonly string[]) => runNode([join(ROOT, 'create/index.mjs'), ...args], { folder });

test.each(['nestjs', ''])(
  'npm create toolwright refuses the template %j, and lists the available templates',
  (name) => {
    expect(create('shop', '--template', name)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: `create-toolwright: there is no template "${name}"; use one of basic, nest, mcp, chat, agent\n`,
    });
  },
);

test('npm create toolwright refuses a second folder and an unknown option, and creates nothing', () => {
  expect(create('shop', 'my shop')).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'create-toolwright: give one folder, not 2: shop "my shop"\n',
  });
  expect(create('shop', '--tmplate', 'mcp')).toMatchObject({ exitCode: 2, stdout: '' });
  expect(readdirSync(folder)).toEqual([]);
});

test('npm create toolwright prints the folder quoted for the shell, and exits with 1 if it is not empty', () => {
  expect(create('My Shop')).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('cd "My Shop"\n') });
  expect(create('My Shop')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('is not empty') });
});
