import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { Conversation, discoverTools, ToolRegistry, type ToolResult } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { CommandShell, LocalShell, ShellTools, shellTools } from 'toolwright/toolbox/shell';
import 'reflect-metadata';
import { container, type InjectionToken } from 'tsyringe';
import { newFolder } from '../files/folders.js';

function shellOf(folder = newFolder(), options = {}) {
  const tools = new ToolRegistry().register(...shellTools({ folder, ...options }));
  const run = (command: string, args = {}, scope = {}): Promise<ToolResult> =>
    tools.executeWithContext('run_command', { command, ...args }, scope);
  return { folder, tools, run };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await wait(10);
}

/** Running processes whose command line contains this text; zombies do not count. */
function processesWith(text: string): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      if (!/^\d+$/.test(pid) || / Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))) return false;
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(text);
    } catch {
      return false;
    }
  });
}

let unique = 0;
/** A number of seconds that no other `sleep` process on this machine uses. */
function longTime(): string {
  unique += 1;
  return `${300_000 + process.pid}.${unique}`;
}

describe('run_command', () => {
  test('returns the output in order and the exit code', async () => {
    const { run } = shellOf();
    const { isError, forLLM, details } = await run('echo one; echo two >&2; echo three');
    expect([isError, forLLM]).toEqual([
      false,
      expect.stringMatching(/^(one|two|three|\n)*\n\(exit code 0, [\d.]+ s\)$/),
    ]);
    expect(details).toMatchObject({ exitCode: 0 });
    const failed = await run('echo no >&2; exit 3');
    expect([failed.isError, failed.forLLM]).toEqual([true, expect.stringMatching(/^no\n\(exit code 3, /)]);
    expect((await run('no-such-program')).forLLM).toMatch(/not found\n\(exit code 127/);
    expect((await run('true')).forLLM).toMatch(/^\(no output\)\n/);
    expect((await run('kill -SEGV $$')).forLLM).toContain('ended by SIGSEGV');
  });

  test('runs in the chosen folder, but never outside', async () => {
    const { folder, run } = shellOf();
    mkdirSync(join(folder, 'sub'));
    symlinkSync('/', join(folder, 'out'));
    expect((await run('pwd')).forLLM).toContain(realpathSync(folder));
    expect((await run('pwd', { folder: 'sub' })).forLLM).toContain(`${realpathSync(folder)}/sub\n`);
    mkdirSync(join(folder, 'a', 'b'), { recursive: true });
    symlinkSync('../../sub', join(folder, 'a', 'b', 'link'));
    expect((await run('pwd', { folder: 'a/b/link/..' })).forLLM).toContain(`${realpathSync(folder)}\n`);
    expect((await run('pwd', { folder: 'a/b/../../sub' })).forLLM).toContain(`${realpathSync(folder)}/sub\n`);
    expect((await run('pwd', { folder: 'a/b/link/../..' })).isError).toBe(true);
    for (const outside of ['..', '/', 'out', 'out/tmp', 'sub/../..', 'nowhere'])
      expect([outside, (await run('touch evil', { folder: outside })).isError]).toEqual([outside, true]);
    expect(existsSync(join(folder, '..', 'evil'))).toBe(false);
  });

  test('has a clean environment by default', async () => {
    process.env.TOOLBOX_SECRET = 'secret';
    process.env.BASH_ENV = '/dev/null';
    try {
      expect((await shellOf().run('env')).forLLM).not.toContain('secret');
      expect((await shellOf().run('echo $PATH')).forLLM).toContain('/bin');
      const own = shellOf(newFolder(), { environment: { MINE: 'yes', BASH_ENV: '/x' } });
      expect((await own.run('echo $MINE$TOOLBOX_SECRET$BASH_ENV')).forLLM).toMatch(/^yes\n/);
      const all = shellOf(newFolder(), { environment: 'inherit' });
      expect((await all.run('echo $TOOLBOX_SECRET$BASH_ENV')).forLLM).toMatch(/^secret\n/);
    } finally {
      delete process.env.TOOLBOX_SECRET;
      delete process.env.BASH_ENV;
    }
  });

  test('truncates long output in the middle', async () => {
    const { run } = shellOf();
    const { forLLM } = await run('echo first; seq 1 200000; echo last');
    expect(forLLM.length).toBeLessThan(61_000);
    expect(forLLM).toMatch(/^first\n1\n2\n/);
    expect(forLLM).toMatch(/characters omitted/);
    expect(forLLM).toMatch(/200000\nlast\n\(exit code 0/);
  });

  test('does not split characters of several bytes', async () => {
    const { run } = shellOf();
    const { forLLM } = await run(
      'printf "\\xe2"; sleep 0.1; printf "\\x82\\xac"; printf "\\xf0\\x9d\\x84\\x9e"',
    );
    expect(forLLM).toMatch(/^€𝄞\n/);
  });

  test('reports output while the command runs', async () => {
    const { run } = shellOf();
    const updates: unknown[] = [];
    const told = Promise.withResolvers<void>();
    const { folder } = { folder: newFolder() };
    const file = join(folder, 'go');
    const onUpdate = (update: unknown): void => {
      updates.push(update);
      told.resolve();
    };
    const ended = run(`echo first; until [ -e ${file} ]; do sleep 0.05; done; echo second`, {}, { onUpdate });
    await told.promise;
    expect(updates).toEqual([{ output: 'first\n' }]);
    await shellOf(folder).run('touch go');
    expect((await ended).forLLM).toMatch(/^first\nsecond\n/);
    expect(updates.map((update) => (update as { output: string }).output).join('')).toBe('first\nsecond\n');
  });

  test.each([
    ['a child process', (time: string) => `sleep ${time}`],
    ['a background process', (time: string) => `sleep ${time} & wait`],
    [
      'a process that ignores SIGTERM',
      (time: string) => `trap '' TERM; (trap '' TERM; sleep ${time}) & sleep ${time}`,
    ],
    [
      'a process outside of the process group',
      (time: string) => `setsid sleep ${time} & setsid -f sleep ${time}; sleep ${time}`,
    ],
    ['a process in a pipeline', (time: string) => `sleep ${time} | cat | sleep ${time}`],
  ])('an abort ends all started processes: %s', async (_what, command) => {
    const { run } = shellOf();
    const time = longTime();
    const controller = new AbortController();
    const ended = run(command(time), {}, { signal: controller.signal });
    await until(() => processesWith(time).length > 0);
    controller.abort();
    expect((await ended).isError).toBe(true);
    await until(() => processesWith(time).length === 0);
  });

  test('a time limit ends the command and returns its output so far', async () => {
    const { run } = shellOf();
    const time = longTime();
    const { isError, forLLM } = await run(`echo before; sleep ${time}`, { seconds: 1 });
    expect(isError).toBe(true);
    expect(forLLM).toMatch(
      /^before\n\(it took too long and was stopped after [\d.]+ s, with all processes that it had started\)$/,
    );
    expect(processesWith(time)).toEqual([]);
  });

  test('ends background processes of a command that finished', async () => {
    const { run } = shellOf();
    const time = longTime();
    expect((await run(`sleep ${time} & echo done`)).forLLM).toMatch(/^done\n/);
    expect(processesWith(time)).toEqual([]);
  });

  test('has no input and no terminal', async () => {
    const { run } = shellOf();
    expect((await run('cat; test -t 1 || echo none')).forLLM).toMatch(/^none\n/);
  });
});

describe('commands in the background', () => {
  test('can be listed, read and ended', async () => {
    const { tools, run } = shellOf();
    const time = longTime();
    const started = await run(`echo ready; sleep ${time}`, { background: true });
    expect(started.forLLM).toMatch(/^command_1 runs in the background/);
    const call = async (tool: string, args = {}): Promise<string> => (await tools.execute(tool, args)).forLLM;
    let output = '';
    while (!output.includes('ready')) {
      await wait(10);
      output = await call('command_output', { id: 'command_1' });
    }
    expect(output).toBe('ready\n\n(running)');
    expect(await call('command_output', { id: 'command_1' })).toBe('(nothing new)\n(running)');
    expect(await call('command_output', { id: 'command_1', all: true })).toContain('ready');
    expect(await call('list_commands')).toBe(`command_1 (running): echo ready; sleep ${time}`);
    expect(await call('kill_command', { id: 'command_1' })).toBe(
      'command_1 and all processes that it had started were stopped.',
    );
    expect(processesWith(time)).toEqual([]);
    expect(await call('list_commands')).toMatch(/^command_1 \(stopped after/);
    expect(await call('kill_command', { id: 'command_1' })).toContain('has already ended');
    expect((await tools.execute('command_output', { id: 'command_9' })).isError).toBe(true);
  });

  test.each([
    ['another conversation', { conversationId: 'mine' }, { conversationId: 'other' }],
    ['another owner outside of conversations', { owner: { user: 'u1' } }, { owner: { user: 'u2' } }],
  ])('are not visible to %s', async (_, mine, other) => {
    const { tools, run } = shellOf();
    await run(`sleep ${longTime()}`, { background: true }, mine);
    expect((await tools.executeWithContext('list_commands', {}, other)).forLLM).toContain('No command');
    for (const tool of ['command_output', 'kill_command'])
      expect((await tools.executeWithContext(tool, { id: 'command_1' }, other)).isError).toBe(true);
    expect((await tools.executeWithContext('kill_command', { id: 'command_1' }, mine)).isError).toBe(false);
  });

  test('report their end to the conversation', async () => {
    const { tools } = shellOf();
    const provider = new ScriptedProvider([
      {
        toolCalls: [
          { name: 'run_command', arguments: { command: 'sleep 0.1; echo result', background: true } },
        ],
      },
      { content: 'started' },
      { content: 'heard of it' },
    ]);
    const conversation = new Conversation({ provider, model: 'm', tools });
    expect((await conversation.prompt('Go')).content).toBe('started');
    await conversation.idle({ tasks: true });
    const told = conversation.messages
      .map(({ content }) => String(content))
      .find((text) => text.includes('async:run_command'));
    expect(told).toMatch(/command_1: sleep 0\.1; echo result\nresult\n\(exit code 0/);
  });

  test('are ended when the toolset is disposed', async () => {
    const time = longTime();
    const shell = new ShellTools(new LocalShell({ folder: newFolder() }));
    await shell.runCommand(`sleep ${time}`, '.', undefined, true);
    await until(() => processesWith(time).length > 0);
    await shell.dispose();
    expect(processesWith(time)).toEqual([]);
  });

  test('are limited in number', async () => {
    const { run, tools } = shellOf();
    const time = longTime();
    const results: boolean[] = [];
    for (let index = 0; index < 17; index += 1)
      results.push((await run(`sleep ${time}`, { background: true })).isError);
    expect(results.indexOf(true)).toBe(16);
    for (let index = 1; index <= 16; index += 1)
      await tools.execute('kill_command', { id: `command_${index}` });
    expect(processesWith(time)).toEqual([]);
  });
});

describe('ShellTools', () => {
  test('is injected with the registered shell, and its methods can be offered individually', async () => {
    const own = container.createChildContainer();
    const shell = new LocalShell({ folder: newFolder({ 'a.txt': 'injected' }) });
    own.register(CommandShell as InjectionToken<CommandShell>, { useValue: shell });
    const offered = discoverTools({ toolsets: [ShellTools], container: own });
    const tools = new ToolRegistry().register(...offered.filter(({ name }) => name === 'run_command'));
    expect(tools.list()).toEqual(['run_command']);
    expect((await tools.execute('run_command', { command: 'cat a.txt' })).forLLM).toContain('injected');
  });
});
