import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { NodeRun } from '../processes/run-node.js';
import { type AssistantStart, runHere, runProcess } from './assistant-runs.js';

const QUESTION = 'What is 12 * (3 + 4), and which of my notes mention invoices?';
const OFFLINE = /^assistant: no OPENAI_API_KEY: using the offline stand-in.*\n$/;
/** One line that the program wrote, not Node. */
const ONE_LINE = /^assistant: [^\n]+\n$/;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'assistant-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function run(start: Omit<AssistantStart, 'folder'> = {}): Promise<NodeRun> {
  return runHere({ folder, ...start });
}

/** For tests of the process itself: arguments, streams, exit, parallel processes. */
function runAlone({ args, input }: Pick<AssistantStart, 'args' | 'input'>): Promise<NodeRun> {
  return runProcess({ folder, args, input });
}

describe('examples/assistant without a key', () => {
  test('answers a question with two tools, and shows each with arguments and duration', async () => {
    const { exitCode, stdout, stderr } = await runAlone({ args: [QUESTION] });
    expect(stderr).toMatch(OFFLINE);
    expect(stdout).toMatch(/^✓ calculate \{"expression":"12 \* \(3 \+ 4\)"\} \([\d.]+ m?s\)$/m);
    expect(stdout).toMatch(/^✓ search_notes \{"query":"invoices"\} \([\d.]+ m?s\)$/m);
    const answer = stdout.slice(stdout.lastIndexOf('✓'));
    expect(answer).toContain('84');
    for (const note of ['invoicing-checklist', 'call-with-mara', 'yearly-review'])
      expect(answer).toContain(note);
    for (const note of ['lentil-soup', 'trip-to-lisbon']) expect(answer).not.toContain(note);
    expect(exitCode).toBe(0);
  });

  test('accepts a request of several words', async () => {
    expect((await run({ args: ['what', 'is', '2 + 2 * 3'] })).stdout).toMatch(/: 8\n$/);
  });

  test('--json prints the result of the run as JSON and nothing else', async () => {
    const { exitCode, stdout, stderr } = await run({ args: ['--json', QUESTION] });
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ status: 'completed', iterations: 2 });
    expect(result.toolCalls.map(({ name }: { name: string }) => name)).toEqual(['calculate', 'search_notes']);
    expect(result.toolCalls[0].result).toMatchObject({ for_llm: '84', is_error: false });
    expect([exitCode, stderr]).toEqual([0, expect.stringMatching(OFFLINE)]);
  });

  test('takes all lines of piped text as one request', async () => {
    const { exitCode, stdout } = await runAlone({ args: ['--json'], input: 'What is\n12 * (3 + 4)?\n' });
    const { messages, content } = JSON.parse(stdout);
    expect(messages[1]).toEqual({ role: 'user', content: 'What is\n12 * (3 + 4)?' });
    expect([exitCode, content]).toEqual([0, expect.stringContaining('84')]);
  });

  test.each(['', ' \n'])('shows a tour if there is no request (piped in: %j)', async (input) => {
    const { exitCode, stdout } = await run({ input });
    expect(stdout.match(/^> /gm)).toHaveLength(4);
    for (const sign of ['84', 'invoicing-checklist', 'INV-0002', '+46 8 555 0101', '+09:00'])
      expect(stdout).toContain(sign);
    expect(exitCode).toBe(0);
  });

  test('with --json, the tour prints one line of JSON per request', async () => {
    const { stdout } = await run({ args: ['--json'] });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).status)).toEqual(Array(4).fill('completed'));
  });

  test('a run finds what an earlier run stored, and shows user messages of tools', async () => {
    const added = await run({ args: ["add contact name 'Eva Lund' email eva@lund.example"] });
    expect(added.stdout).toMatch(/^ {2}Added Eva Lund, customer, eva@lund.example\.$/m);
    const found = await run({ args: ["find contact 'Eva Lund'"] });
    expect(found.stdout).toContain('1 contact:\n- Eva Lund, customer, eva@lund.example');
  });

  test('--data and ASSISTANT_DATA set the data folder, and --data wins', async () => {
    const [mine, other] = [join(folder, 'mine'), join(folder, 'other')];
    const write = ["write a new note titled 'Ideas' with the text 'Paint the door'"];
    await run({ args: ['--data', mine, ...write], environment: { ASSISTANT_DATA: other } });
    expect((await run({ args: ['list the notes', '--data', mine] })).stdout).toContain('- ideas');
    const { stdout } = await run({ args: ['list the notes'], environment: { ASSISTANT_DATA: other } });
    expect(stdout).not.toContain('- ideas');
  });

  test('two assistants that start at the same time in a new folder both work', async () => {
    const ends = await Promise.all([
      runAlone({ args: ['list the reminders'] }),
      runAlone({ args: ['list the reminders'] }),
    ]);
    for (const { exitCode, stdout } of ends) {
      expect(stdout).toContain('3 reminders');
      expect(exitCode).toBe(0);
    }
  });

  test('--verbose logs calls with their arguments to standard error', async () => {
    const { stderr } = await runAlone({ args: ['--verbose', 'what is 2 + 2'] });
    expect(stderr).toMatch(/debug .*tool=calculate/);
    expect(stderr).toContain('2 + 2');
  });
});

describe('the command line', () => {
  test('--help shows the usage, and -v the version', async () => {
    expect(await run({ args: ['--help'] })).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('Usage:'),
      stderr: '',
    });
    expect((await runAlone({ args: ['-v'] })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each([
    [['--colour', 'x'], /Unknown option '--colour'/],
    [['-x'], /Unknown option '-x'/],
    [['--data'], /--data/],
    [['--data', ' ', 'x'], /--data needs a folder/],
    [['--json=yes', 'x'], /--json/],
    [[''], /the request is empty/],
    [['  '], /the request is empty/],
    [['x'.repeat(100_001)], /100001 characters/],
  ])('invalid arguments are rejected with one line and exit code 2 (%#)', async (args, problem) => {
    const { exitCode, stdout, stderr } = await run({ args });
    const line = stderr.replace(/^assistant: no OPENAI_API_KEY.*\n/, '');
    expect([line, line, stdout, exitCode]).toEqual([
      expect.stringMatching(ONE_LINE),
      expect.stringMatching(problem),
      '',
      2,
    ]);
  });

  test.each([
    ['bytes that are not UTF-8', Uint8Array.of(0xff, 0xfe, 0x00, 0x80)],
    ['text with a NUL', 'hello\0world'],
    ['more than a megabyte', 'x'.repeat(1_100_000)],
  ])('%s on standard input are rejected with one line and exit code 2', async (_what, input) => {
    const { exitCode, stdout, stderr } = await run({ input });
    expect(stderr.replace(/^assistant: no OPENAI_API_KEY.*\n/, '')).toMatch(ONE_LINE);
    expect([stdout, exitCode]).toEqual(['', 2]);
  });
});
