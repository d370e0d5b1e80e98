import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type BuiltProgram, buildProgram } from '../processes/build-program.js';
import { StoredRunProcess } from './stored-run-process.js';
import { approveAll } from './stored-run-story.js';
import { historyFaults } from './strict-history.js';

const ROUNDS = 40;

let program: BuiltProgram;
let folder: string;
let processes: readonly StoredRunProcess[];

beforeAll(async () => {
  program = buildProgram('test/flow/stored-run-program.ts');
  folder = mkdtempSync(join(tmpdir(), 'toolwright-processes-'));
  writeFileSync(effects(), '');
  processes = [start(), start()];
  const ready = await Promise.all(processes.map((one) => one.hear()));
  // `toolwright/stores` was imported but no file store opened, so SQLite is not loaded.
  expect(ready).toEqual([
    { told: 'ready', hasLoadedSqlite: false },
    { told: 'ready', hasLoadedSqlite: false },
  ]);
});

afterAll(async () => {
  await Promise.all(processes.map((one) => one.kill()));
  rmSync(folder, { recursive: true, force: true });
  program.remove();
});

function start(): StoredRunProcess {
  return new StoredRunProcess(program, { path: join(folder, 'runs.sqlite'), effects: effects() });
}

function effects(): string {
  return join(folder, 'effects');
}

function happened(run: string | undefined): readonly string[] {
  return readFileSync(effects(), 'utf8')
    .split('\n')
    .filter((line) => line.endsWith(` ${run}`));
}

test('if two processes resume a run at the same moment, exactly one continues and the other gets RunClaimed', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    processes[round % 2]!.order({ do: 'suspend' });
    const { told, runId = '', pending, run } = await processes[round % 2]!.hear();
    expect(told).toBe('suspended');
    const answers = approveAll(pending);
    const at = Date.now() + 4;
    for (const one of processes) one.order({ do: 'resume', runId, answers, at, stopIn: 'model' });
    // The winner stops in the middle, so that the other resumes before its end.
    const said = await Promise.all(processes.map((one) => one.hear()));
    expect(said.map((one) => one.told).sort()).toEqual(['RunClaimed', 'stopped']);
    const winner = processes[said.findIndex((one) => one.told === 'stopped')]!;
    winner.order({ do: 'finish' });
    const end = await winner.hear();
    expect(end.told).toBe('completed');
    expect(historyFaults(end.messages ?? [])).toEqual([]);
    expect(happened(run)).toEqual([`counted ${run}`, `placed ${run}`]);
  }
});

test('processes that create the same file at the same moment can all use it', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const at = Date.now() + 3;
    for (const one of processes) one.order({ do: 'open', path: join(folder, `new-${round}.sqlite`), at });
    const said = await Promise.all(processes.map((one) => one.hear()));
    expect(said).toEqual([{ told: 'opened' }, { told: 'opened' }]);
  }
});

test('the renewal of a claim does not keep a process alive', async () => {
  const one = start();
  await one.hear();
  one.order({ do: 'suspend' });
  const { runId = '', pending } = await one.hear();
  one.order({ do: 'resume', runId, answers: approveAll(pending), at: 0, stopIn: 'model' });
  expect((await one.hear()).told).toBe('stopped');
  expect(await one.leave()).toBe(0);
});
