import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { ROOT } from '../../structure/repository.js';

const MAIN = builtFile('dist/src/dev/cli/main.js');
const MODULE = 'test/parts/cli/fixtures/chatted-tools.mjs';

function chat(...args: readonly string[]): NodeProcess {
  return new NodeProcess([MAIN, 'chat', MODULE, ...args], { folder: ROOT });
}

test('toolwright chat streams answers, shows progress as bars, and exits when its input ends', async () => {
  await using process = chat();
  process.write('copy_files\n');
  await process.waitFor(/It says: .*copied/);
  process.endInput();
  const { exitCode, stdout, stderr } = await process.ended();
  expect(exitCode).toBe(0);
  expect(stderr).toContain('copy_files [#####---------------] 25 %');
  expect(stderr).toContain('copy_files [####################] 100 %');
  // Progress does not move the cursor.
  expect(stdout + stderr).not.toContain('\u001b');
});

test('toolwright chat asks for approvals: approved, refused with a reason, edited', async () => {
  await using process = chat('--interactive');
  process.write('pay {"amount":5}\n');
  await process.waitFor(/Run pay\?/);
  process.write('y\n');
  await process.waitFor(/It says: Paid 5/);
  process.write('pay {"amount":6}\nno too much\n');
  await process.waitFor(/It says: .*too much/);
  process.write('pay {"amount":7}\ne\n{"amount":70}\n');
  await process.waitFor(/It says: Paid 70/);
  process.write('ask_city\nRome\n');
  await process.waitFor(/It says: Off to Rome/);
  process.write('/exit\n');
  expect((await process.ended()).exitCode).toBe(0);
});

test('toolwright chat aborts a turn on Ctrl-C, and the conversation continues with a valid history', async () => {
  await using process = chat('--interactive');
  process.write('hang\n');
  await process.waitFor(/it hangs/);
  process.send('SIGINT');
  await process.waitFor(/\[aborted/);
  process.write('history\n');
  // The prompt, the call, its result, and the new prompt.
  await process.waitFor(/I know 4 messages/);
  process.write('pay {"amount":5}\n');
  await process.waitFor(/Run pay\?/);
  process.send('SIGINT');
  await process.waitFor(/\[aborted.*\[aborted/s);
  process.write('copy_files\n');
  await process.waitFor(/It says: .*copied/);
  process.endInput();
  expect((await process.ended()).exitCode).toBe(0);
});

test('toolwright chat exits on Ctrl-C if no turn runs', async () => {
  await using process = chat('--offline');
  await process.waitFor(/Ctrl-C aborts/);
  process.send('SIGINT');
  expect((await process.ended()).exitCode).toBe(0);
});

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('toolwright chat aborts its turn on %s, and exits with %i', async (signal, exitCode) => {
  await using process = chat('--interactive');
  process.write('hang\ncopy_files\n');
  await process.waitFor(/it hangs/);
  process.send(signal);
  const ended = await process.ended();
  expect(ended.exitCode).toBe(exitCode);
  expect(ended.stderr).toMatch(/\[aborted/);
  expect(ended.stdout).not.toContain('copied');
});

test('toolwright chat ends a turn that waits for an answer on SIGTERM', async () => {
  await using process = chat('--interactive');
  process.write('pay {"amount":5}\n');
  await process.waitFor(/Run pay\?/);
  process.send('SIGTERM');
  expect((await process.ended()).exitCode).toBe(143);
});

test('toolwright chat uses every line of a pipe as a prompt, and refuses approvals', async () => {
  await using process = chat();
  process.write('pay {"amount":5}\ncopy_files\n');
  process.endInput();
  const { exitCode, stdout, stderr } = await process.ended();
  expect(stderr).toContain('? approval: pay {"amount":5}');
  expect(stdout).toMatch(/It says: .*no user is available.*It says: .*copied/s);
  expect(exitCode).toBe(0);
});

test('toolwright chat --interactive refuses a pending approval when its input ends', async () => {
  await using process = chat('--interactive');
  process.write('pay {"amount":5}\n');
  process.endInput();
  const { exitCode, stdout } = await process.ended();
  expect(stdout).toMatch(/It says: .*no user is available/);
  expect(exitCode).toBe(0);
});

test('toolwright chat reports a missing module, a missing model and invalid data', async () => {
  const run = async (...args: readonly string[]) => {
    await using process = new NodeProcess([MAIN, 'chat', ...args], { folder: ROOT });
    return await process.ended();
  };
  expect(await run()).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('chat takes one module'),
  });
  const noModel = join('dist', 'src', 'toolbox', 'builtin', 'index.js');
  expect(await run(noModel)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--offline') });
  expect(await run(MODULE, '--data', '1')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--data'),
  });
});
