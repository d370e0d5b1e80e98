import { userInfo } from 'node:os';
import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { ROOT } from '../../structure/repository.js';
import { runCommand } from './run-command.js';

const MAIN = builtFile('dist/src/dev/cli/main.js');
const MODULE = 'test/parts/cli/fixtures/called-tools.mjs';
const call = (...args: string[]) => runCommand(['call', MODULE, ...args], ROOT);

test('toolwright call prints the result of one call', async () => {
  expect(await call('add', '{"a":1,"b":"2"}')).toEqual({ code: 0, out: '3\n', error: '' });
});

test('toolwright call --json prints the result with the property names of `runs show --json`', async () => {
  const { code, out } = await call('add', '{"a":1,"b":2}', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual({
    ...{ status: 'success', forLLM: '3' },
    ...{ silent: false, isError: false, async: false },
  });
});

test('toolwright call reports unknown arguments on the error output', async () => {
  expect(await call('add', '{"a":1,"b":2,"c":3}')).toEqual({
    code: 0,
    out: '3\n',
    error: 'toolwright: Ignored: c is not an argument of add.\n',
  });
});

test('toolwright call lets the module configure the warnings of its process', async () => {
  const { emitWarning } = process;
  try {
    const { out } = await runCommand(['call', 'test/parts/cli/fixtures/own-warnings.mjs', 'has_own'], ROOT);
    expect(out).toBe('true\n');
  } finally {
    process.emitWarning = emitWarning;
  }
});

test('toolwright call passes data to the context of the call', async () => {
  expect((await call('who_am_i', '--data', '{"userId":"ada"}')).out).toBe('ada\n');
});

test('toolwright call exits with 1 if the arguments are invalid, and prints why', async () => {
  const { code, out } = await call('add', '{"a":1}');
  expect(code).toBe(1);
  expect(out).toContain('b: is required');
});

test('toolwright call waits for the work of a background tool', async () => {
  expect(await call('report')).toEqual({ code: 0, out: 'written\n', error: '' });
});

test('toolwright call shows the progress of a call on the error output', async () => {
  const { out, error } = await call('copy');
  expect(out).toBe('copied\n');
  expect(error).toContain('copy [##########----------] 50 %');
});

test('toolwright call shows the progress once if a call asks a question', async () => {
  const input = new PassThrough();
  input.end('there\n');
  const { out, error } = await runCommand(['call', MODULE, 'move'], ROOT, { input });
  expect(out).toBe('moved to there\n');
  expect(error.match(/50 %\n/g)).toHaveLength(1);
});

test('toolwright call asks for an approval, and does not run the call if the input ends', async () => {
  const input = new PassThrough();
  input.end();
  const { code, out, error } = await runCommand(['call', MODULE, 'pay'], ROOT, { input });
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(error).toContain('Run pay?');
  expect(error).toContain('--yes approves it');
});

test('toolwright call runs a call that is approved, by an answer or with --yes', async () => {
  const input = new PassThrough();
  input.end('y\n');
  expect(await runCommand(['call', MODULE, 'pay'], ROOT, { input })).toMatchObject({
    code: 0,
    out: 'paid\n',
  });
  expect(await call('pay', '--yes')).toEqual({ code: 0, out: 'paid\n', error: '' });
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('toolwright call aborts its call on %s, and exits with %i', async (signal, exitCode) => {
  const module = 'test/parts/cli/fixtures/chatted-tools.mjs';
  for (const [tool, pattern] of [
    ['hang', /it hangs/],
    ['ask_city', /Which city\?/],
  ] as const) {
    await using process = new NodeProcess([MAIN, 'call', module, tool], { folder: ROOT });
    await process.waitFor(pattern);
    process.send(signal);
    const ended = await process.ended();
    expect([ended.exitCode, ended.stdout]).toEqual([exitCode, '']);
  }
});

test('toolwright call --yes answers no question, and the error says how to answer', async () => {
  const input = new PassThrough();
  input.end();
  const { code, out, error } = await runCommand(['call', MODULE, 'count', '--yes'], ROOT, { input });
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(error).toContain('write the answer on the terminal, or as a line of the input');
  expect(error).not.toContain('--yes');
});

test('toolwright call belongs to the user of the operating system, who may not approve every call', async () => {
  expect(await call('close_account', '--yes')).toEqual({
    code: 0,
    out: `${userInfo().username}\n`,
    error: '',
  });
  const { code, out, error } = await call('refund', '--yes');
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(error).toMatch(/^toolwright: [^\n]*only by a user who is not the owner of the run[^\n]*\n$/);
});

test('toolwright call runs for a user without a name, as containers have', async () => {
  const nameless = `
    import os from 'node:os';
    import { syncBuiltinESMExports } from 'node:module';
    os.userInfo = () => { throw new Error('ENOENT'); };
    syncBuiltinESMExports();`;
  const program = ['--import', `data:text/javascript,${encodeURIComponent(nameless)}`, MAIN];
  await using process = new NodeProcess([...program, 'call', MODULE, 'add', '{"a":1,"b":2}'], {
    folder: ROOT,
  });
  expect(await process.ended()).toEqual({ exitCode: 0, stdout: '3\n', stderr: '' });
});

test('toolwright call reports an answer that does not fit', async () => {
  const input = new PassThrough();
  input.end('many\n');
  const { code, out, error } = await runCommand(['call', MODULE, 'count'], ROOT, { input });
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(error).toMatch(/\ntoolwright: [^\n]+ wrong:\n[^\n]+must be integer\n$/);
});

test.each([
  [
    ['nothing'],
    "there is no tool 'nothing'; the tools are add, copy, move, count, report, pay, refund, close_account, who_am_i",
  ],
  [['add', '{}', 'more'], 'call takes a module, a tool and its arguments'],
  [['add', '{}', '--data', '5'], '--data must be a JSON object'],
])('toolwright call %j is refused in one line', async (args, expected) => {
  const { code, out, error } = await call(...args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(error.trim().split('\n')).toEqual([expect.stringContaining(expected)]);
});
