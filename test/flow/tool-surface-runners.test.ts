import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { builtFile } from '../processes/built-file.js';
import { runNode } from '../processes/run-node.js';

const ROOT = JSON.stringify(builtFile('dist/src/index.js'));
const KIT = JSON.stringify(builtFile('dist/src/dev/testing/index.js'));

const PROGRAM = `
import { test } from 'node:test';
import { defineTool, ToolRegistry } from ${ROOT};
import { expectToolSurface } from ${KIT};
const registry = (type) => new ToolRegistry().register(
  defineTool({ name: 'find', description: 'Finds', parameters: { type: 'object', properties: { id: { type } } }, execute: () => 1 }));
test('stays', () => expectToolSurface(registry('string'), { file: 'tools.json' }));
test('changes', () => expectToolSurface(registry('integer'), { file: 'tools.json' }));
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-runners-'));
  writeFileSync(join(folder, 'surface.test.mjs'), PROGRAM);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('expectToolSurface works under node:test, which reports the changes', () => {
  const environment = { PATH: process.env.PATH };
  const { exitCode, stdout } = runNode(['--test', '--test-reporter=tap', 'surface.test.mjs'], {
    folder,
    environment,
  });
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^ok 1 - stays$/m);
  expect(stdout).toMatch(/^not ok 2 - changes$/m);
  expect(stdout).toContain('find, id: type narrowed from "string" to "integer"');
});
