import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SqliteRunStore } from 'toolwright/stores';
import { builtFile } from '../processes/built-file.js';
import { runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-doctor-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const doctor = (place: string, ...args: readonly string[]) =>
  runNode([builtFile('dist/src/dev/cli/main.js'), 'doctor', ...args], { folder: place });

test('toolwright doctor reports no problem for an example of the repository', () => {
  const { exitCode, stdout, stderr } = doctor(join(ROOT, 'examples/nestjs'));
  expect(stdout).toMatch(/^ok {7}toolwright\.gen\.ts is up to date$/m);
  expect({ exitCode, stderr, problems: stdout.match(/^problem.*/gm) }).toEqual({
    exitCode: 0,
    stderr: '',
    problems: null,
  });
});

test('toolwright doctor exits with 1 for a queue without a worker, and loads modules of plain objects', () => {
  const code = `
    export const one = { name: 'one', description: 'One', parameters: { type: 'object' }, execute: () => 1 };`;
  writeFileSync(join(folder, 'worker.mjs'), code);
  const hour = 3_600_000;
  using store = new SqliteRunStore({ path: join(folder, 'runs.sqlite'), now: () => Date.now() - hour });
  const job = { id: 'a', tool: 'one', arguments: {}, scope: {} };
  store.jobs.addJob({ ...job, fingerprint: 'f', idempotencyKey: 'a', callId: 'a' }, {});
  const { exitCode, stdout } = doctor(folder, '--store', 'runs.sqlite', '--module', 'worker.mjs');
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^ok {7}worker\.mjs: 1 tool$/m);
  expect(stdout).toMatch(/^problem {2}no worker takes jobs .* 1 job \(one\), the oldest added 1 hour ago/m);
});
