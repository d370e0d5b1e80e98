import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { AgentSessions } from '../../../../src/dev/cli/agent-command.js';
import { buildProgram } from '../../../processes/build-program.js';
import { newFolder } from '../../toolbox/files/folders.js';

const program = join(import.meta.dirname, 'racing-program.mjs');
const module = buildProgram('test/parts/cli/sessions/sessions-module.ts');
afterAll(module.remove);

/** Returns how often a process opened the session. */
async function race(
  root: string,
  { rounds, processes }: { readonly rounds: number; readonly processes: number },
): Promise<number> {
  const child = spawn(process.execPath, [program, module.file, root, String(rounds), String(processes)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (part: Buffer) => {
    said += part.toString();
  });
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
  return Number(said);
}

describe('sessions of toolwright agent', () => {
  test('are open in only one process at a time while others open, close and crash', async () => {
    const root = newFolder();
    const had = await Promise.all([1, 2, 3].map(() => race(root, { rounds: 1_000, processes: 3 })));
    expect(had.every((times) => times > 0)).toBe(true);
    // Only the session itself remains.
    expect(readdirSync(join(root, 'sessions')).filter((name) => name !== 's')).toEqual([]);
  });

  test('are removed if they have no messages, and stored otherwise', () => {
    const root = newFolder();
    const sessions = new AgentSessions(() => {}, root);
    sessions.open('quiet', '/x')();
    const close = sessions.open('loud', '/x');
    sessions.note({ id: 'loud', folder: '/x', title: 'Hi', undone: [] });
    close();
    expect(readdirSync(root)).toEqual(['loud']);
    expect(existsSync(join(root, 'loud', 'lock'))).toBe(false);
    expect(() => sessions.open('loud', '/y')).toThrow('the session loud belongs to /x');
  });
});
