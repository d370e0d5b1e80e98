import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { Permissions } from 'toolwright/toolbox/permissions';
import { buildProgram } from '../../../processes/build-program.js';
import { newFolder } from '../files/folders.js';

const program = join(import.meta.dirname, 'sharing-program.mjs');
const module = buildProgram('test/parts/toolbox/permissions/permissions-module.ts');
afterAll(module.remove);

/** Runs the program in a process and returns its exit code or signal. */
async function inProcess(file: string, ...args: readonly string[]): Promise<unknown> {
  const child = spawn(process.execPath, [program, module.file, file, ...args], { stdio: 'inherit' });
  const [code, signal] = await once(child, 'exit');
  return signal ?? code;
}

const newFile = (): string => join(newFolder(), 'permissions.json');
const commandsIn = (file: string): readonly unknown[] =>
  new Permissions({ file }).remembered().map(({ rule }) => rule.command);

describe('Permissions of several processes with one file', () => {
  test('store every approval of all processes', async () => {
    const file = newFile();
    const names = ['a', 'b', 'c', 'd'];
    expect(await Promise.all(names.map((name) => inProcess(file, 'remember', name)))).toEqual([0, 0, 0, 0]);
    const all = names.flatMap((name) => Array.from({ length: 30 }, (_, n) => `${name} ${n}`));
    expect([...commandsIn(file)].sort()).toEqual(all.sort());
    // No lock file remains.
    expect(readdirSync(dirname(file))).toEqual(['permissions.json']);
  });

  test('never restore an approval that another process has revoked', async () => {
    const file = newFile();
    await inProcess(file, 'remember', 'dangerous');
    const done = await Promise.all([
      inProcess(file, 'revoke', 'dangerous'),
      inProcess(file, 'remember', 'a'),
      inProcess(file, 'remember', 'b'),
    ]);
    expect(done).toEqual([0, 0, 0]);
    expect(commandsIn(file).filter((command) => String(command).startsWith('dangerous'))).toEqual([]);
    expect(commandsIn(file)).toHaveLength(60);
  });

  test('see immediately if another instance revokes an approval', () => {
    const file = newFile();
    const [one, other] = [new Permissions({ file }), new Permissions({ file })];
    for (let n = 0; n < 50; n += 1) {
      const { id } = one.remember({ command: 'rm a' }, { session: 's' });
      expect(other.remembered()).toHaveLength(1);
      expect([other.revoke(id), one.revoke(id)]).toEqual([true, false]);
      one.remember({ command: 'rm b' }, { session: 's' });
      expect(other.remembered().map(({ rule }) => rule.command)).toEqual(['rm b']);
      one.revoke(one.remembered()[0]?.id ?? '');
    }
  });

  test('recover from a lock whose process was killed, with or without a recorded owner', async () => {
    const file = newFile();
    expect(await inProcess(file, 'die', 'x')).toBe('SIGKILL');
    new Permissions({ file }).remember({ command: 'a' }, { session: 's' });
    // As if the process was killed between creating the lock and writing its owner.
    writeFileSync(`${file}.lock`, '');
    new Permissions({ file }).remember({ command: 'b' }, { session: 's' });
    expect(commandsIn(file)).toEqual(['a', 'b']);
    expect(readdirSync(dirname(file))).toEqual(['permissions.json']);
  });
});
