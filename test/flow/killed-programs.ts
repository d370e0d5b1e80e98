import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { type BuiltProgram, buildProgram } from '../processes/build-program.js';
import { StoredRunProcess } from './stored-run-process.js';

/** A program whose processes each test starts in its own folder; processes that are left are killed. */
export interface KilledPrograms {
  /** Starts a process that stores its data in the file, or in `place`. */
  start(place?: string): Promise<StoredRunProcess>;
  /** The effects of the tools of all processes, in order. */
  effects(): readonly string[];
  /** The data file of this test. */
  file(): string;
}

/** Prepares a test file for killing processes of a program. */
export function killedPrograms(
  name: 'stored-run' | 'conversation' | 'conversations' | 'conversation-reader',
  fileName: string,
): KilledPrograms {
  let program: BuiltProgram;
  let folder: string;
  const started: StoredRunProcess[] = [];
  const file = () => join(folder, fileName);
  const effects = () => join(folder, 'effects');

  beforeAll(() => {
    program = buildProgram(`test/flow/${name}-program.ts`);
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolwright-kill-'));
    writeFileSync(effects(), '');
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((one) => one.kill()));
    rmSync(folder, { recursive: true, force: true });
  });
  afterAll(() => program.remove());

  return {
    file,
    effects: () => readFileSync(effects(), 'utf8').trimEnd().split('\n'),
    async start(place = file()) {
      const one = new StoredRunProcess(program, { path: place, effects: effects() });
      started.push(one);
      expect((await one.hear()).told).toBe('ready');
      return one;
    },
  };
}
