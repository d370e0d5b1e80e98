import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { PendingCall } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { repairTests } from '../../examples/coding-agent/coding-agent.js';
import { rehearsedModel } from '../../examples/coding-agent/rehearsed-model.js';
import { builtFile } from '../processes/built-file.js';
import { runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

// Runs examples/coding-agent on a copy of its sample: real files, and the real tests of the sample.

const PROGRAM = 'dist/examples/coding-agent/main.js';
const SOURCE = 'src/receipt.js';

let folder: string;
let path: string | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'coding-agent-example-'));
  cpSync(join(ROOT, 'examples', 'coding-agent', 'sample'), folder, { recursive: true });
  path = process.env.PATH;
  // The tests of the sample run with this Node.
  process.env.PATH = `${dirname(process.execPath)}:${path}`;
});
afterEach(() => {
  process.env.PATH = path;
  rmSync(folder, { recursive: true, force: true });
});

/** Whether the tests of the sample pass when run directly. */
function testsPass(): boolean {
  try {
    execFileSync(process.execPath, ['--test'], { cwd: folder, stdio: 'ignore', env: cleanEnvironment() });
    return true;
  } catch {
    return false;
  }
}

/** Without the variables of Jest, which would affect `node --test`. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: process.env.HOME };
}

const source = () => readFileSync(join(folder, SOURCE), 'utf8');

/** The tool results in the last request. */
function told(provider: ScriptedProvider): readonly string[] {
  const messages = provider.requests.at(-1)?.messages ?? [];
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
}

describe('examples/coding-agent', () => {
  test('fixes the sample: tests fail, an edit is approved by its diff, tests pass', async () => {
    expect(testsPass()).toBe(false);
    const asked: PendingCall[] = [];
    const provider = rehearsedModel() as ScriptedProvider;
    const before = source();
    const run = await repairTests({
      folder,
      provider,
      model: 'rehearsed',
      ask: async (call) => {
        asked.push(call);
        expect(source()).toBe(before);
        return { approved: true };
      },
    });
    expect([run.status, run.content]).toEqual(['completed', expect.stringContaining('The tests pass')]);
    expect(asked.map(({ tool, kind }) => [tool, kind])).toEqual([['edit_file', 'approval']]);
    expect(asked[0]?.message).toBe(`changes '${SOURCE}': mode 'ask' asks about it`);
    expect(asked[0]?.description).toContain(
      '+  return items.reduce((total, { cents, count }) => total + cents * count, 0);',
    );
    const [first = '', read = '', edit = '', second = ''] = told(provider);
    expect(first).toMatch(/fail 2/);
    expect(read).toContain('total + cents,');
    expect(edit).toContain(SOURCE);
    expect(second).toMatch(/pass 2.*fail 0/s);
    expect(testsPass()).toBe(true);
  });

  test('changes nothing if the edit is refused', async () => {
    const before = source();
    const provider = rehearsedModel() as ScriptedProvider;
    const run = await repairTests({
      folder,
      provider,
      model: 'rehearsed',
      ask: async () => ({ approved: false, reason: 'Not like this.' }),
    });
    expect([run.status, run.content]).toEqual(['completed', 'The tests still fail: nothing was changed.']);
    expect(told(provider)[2]).toContain('Not like this.');
    expect([source() === before, testsPass()]).toEqual([true, false]);
  });

  test('cannot change the tests, and asks before it runs another command', async () => {
    const name = 'test/receipt.test.js';
    const before = readFileSync(join(folder, name), 'utf8');
    const edits = [{ oldText: '550', newText: '430' }];
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'edit_file', arguments: { path: name, edits } }] },
      { toolCalls: [{ name: 'run_command', arguments: { command: `echo > ${name}` } }] },
      { toolCalls: [{ name: 'run_command', arguments: { command: 'npm test && touch more' } }] },
      { content: 'I give up.' },
    ]);
    const asked: string[] = [];
    const ask = async ({ message = '' }: PendingCall) => {
      asked.push(message);
      return { approved: false };
    };
    const run = await repairTests({ folder, provider, model: 'scripted', ask });
    expect([run.status, readFileSync(join(folder, name), 'utf8') === before]).toEqual(['completed', true]);
    expect(told(provider)[0]).toContain('the tests say what is right');
    expect(asked).toEqual([expect.stringContaining(name), expect.stringContaining("'touch more'")]);
  });

  test('obeys additional deny rules of the project', async () => {
    const rules = [
      { decision: 'deny', path: 'src/**' },
      { decision: 'allow', path: 'test/**' },
    ];
    writeFileSync(join(folder, '.coding-agent.json'), JSON.stringify({ permissions: { rules } }));
    const provider = rehearsedModel() as ScriptedProvider;
    const never = () => Promise.reject(new Error('nobody is to be asked'));
    const run = await repairTests({ folder, provider, model: 'rehearsed', ask: never });
    expect(run.status).toBe('completed');
    expect(told(provider).slice(1, 3)).toEqual([
      expect.stringContaining('a rule of the folder denies it'),
      expect.stringContaining('a rule of the folder denies it'),
    ]);
  });

  test('runs with one command, and refuses the edit if nobody can be asked', () => {
    const environment = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: folder };
    const { exitCode, stdout, stderr } = runNode([builtFile(PROGRAM), '--yes'], { folder, environment });
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toContain("? edit_file\nchanges 'src/receipt.js': mode 'ask' asks about it");
    expect(stdout).toContain('The tests pass');
    const nobody = runNode([builtFile(PROGRAM)], { folder, environment });
    expect([nobody.exitCode, nobody.stdout]).toEqual([
      0,
      expect.stringMatching(/refused.*nothing was changed/s),
    ]);
    const wrong = runNode([builtFile(PROGRAM), '--no'], { folder, environment });
    expect(wrong.exitCode).toBe(2);
  });
});
