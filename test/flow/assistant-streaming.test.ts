import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Answer, delta, events, LoopbackServer } from '../parts/providers/loopback-server.js';
import type { NodeRun } from '../processes/run-node.js';
import { type AssistantStart, runHere, runProcess } from './assistant-runs.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'assistant-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function ask(server: LoopbackServer, start: Omit<AssistantStart, 'folder'> = {}): Promise<NodeRun> {
  const environment = { OPENAI_BASE_URL: server.baseURL };
  return runHere({ folder, args: ['Please'], environment, ...start });
}

/** A model that streams one of these replies for each request. */
function modelThat(...replies: Answer[]): Promise<LoopbackServer> {
  return LoopbackServer.start((response, request) => replies.shift()?.(response, request));
}

function says(...pieces: readonly string[]): Answer {
  return events([...pieces.map((content) => delta({ content })), delta({}, 'stop')]);
}

/** A reply with text and these calls. */
function calls(text: string, ...wanted: readonly (readonly [name: string, args: unknown])[]): Answer {
  const pieces = wanted.map(([name, args], index) => {
    const named = { name, arguments: JSON.stringify(args) };
    return delta({ tool_calls: [{ index, id: `c${index}`, type: 'function', function: named }] });
  });
  return events([delta({ content: text }), ...pieces, delta({}, 'tool_calls')]);
}

function writePiece(response: ServerResponse, chunk: unknown): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

const multiply = ['calculate', { expression: '6 * 7' }] as const;
const MULTIPLIED = '✓ calculate \\{"expression":"6 \\* 7"\\} \\([\\d.]+ m?s\\)\n';

describe('examples/assistant shows a run while it continues', () => {
  test('shows a finished call and the progress of another one that is still running', async () => {
    // Writing to a named pipe blocks until it is read: a slow tool without a timer.
    const pipe = join(folder, '.assistant', 'exports', 'invoices.csv');
    mkdirSync(join(folder, '.assistant', 'exports'), { recursive: true });
    execFileSync('mkfifo', [pipe]);
    await using server = await modelThat(calls('', ['export_invoices', {}], multiply), says('Both done.'));
    let shown: string | undefined;
    let read: Promise<string> | undefined;
    const { exitCode, stdout } = await ask(server, {
      whileRunning: async (assistant) => {
        await Promise.all([assistant.waitFor(/✓ calculate/), assistant.waitFor(/writing/)]);
        shown = assistant.stdout;
        read = readFile(pipe, 'utf8');
      },
    });
    expect(shown).toMatch(new RegExp(`^${MULTIPLIED}`, 'm'));
    expect(shown).toMatch(/^ {2}export_invoices: writing 4 invoices$/m);
    expect(shown).not.toMatch(/[✓✗] export_invoices|done/);
    expect(stdout.slice(shown?.length)).toMatch(
      /^✓ export_invoices \{\} \(.*\)\n {2}Exported 4 invoices to .*\nBoth done\.\n$/,
    );
    expect([exitCode, await read]).toEqual([0, expect.stringContaining('INV-0001')]);
  });

  test('shows a call before the model starts its answer', async () => {
    const shown = Promise.withResolvers<void>();
    await using server = await modelThat(calls('', multiply), async (response, request) => {
      await shown.promise;
      says('It is 42.')(response, request);
    });
    const { stdout } = await ask(server, {
      whileRunning: (assistant) => assistant.waitFor(/✓ calculate/).then(() => shown.resolve()),
    });
    expect(stdout).toMatch(new RegExp(`^${MULTIPLIED}It is 42\\.\n$`));
  });

  test('shows the answer as it is written, and only once', async () => {
    const begun = Promise.withResolvers<void>();
    await using server = await modelThat(async (response) => {
      writePiece(response, delta({ content: 'Once upon ' }));
      await begun.promise;
      writePiece(response, delta({ content: 'a time.' }));
      writePiece(response, delta({}, 'stop'));
      response.end('data: [DONE]\n\n');
    });
    const { exitCode, stdout, stderr } = await ask(server, {
      whileRunning: (assistant) => assistant.waitFor(/^Once upon $/).then(() => begun.resolve()),
    });
    expect([exitCode, stdout, stderr]).toEqual([0, 'Once upon a time.\n', '']);
    expect(server.requests[0]?.body).toMatchObject({ stream: true });
  });

  test('shows text before calls on separate lines, and the reason of a failed call once', async () => {
    await using server = await modelThat(
      calls('\n\nLet me see.', ['read_note', { note: 'nowhere' }]),
      says('No ', 'such note.\n'),
    );
    const { exitCode, stdout, stderr } = await ask(server);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^Let me see\.\n✗ read_note \{"note":"nowhere"\} \(.*\)\n {2}There is no note 'nowhere'.*\nNo such note\.\n$/,
    );
  });

  test('removes control characters, and never splits a character, wherever the stream is cut', async () => {
    await using server = await modelThat(
      says('\u001b[31mred\u001b', '[2J \ud83d', '\ude00\u0007\r', '\u009b1A.'),
    );
    const { stdout } = await ask(server);
    expect(stdout).toBe('red[2J \u{1f600}.\n');
  });

  test('--json requests whole replies, and prints only the result', async () => {
    const whole = { message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' };
    await using server = await LoopbackServer.start((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ choices: [{ index: 0, ...whole }] }));
    });
    const { stdout } = await ask(server, { args: ['--json', 'Please'] });
    expect(JSON.parse(stdout)).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(stdout.indexOf('\n')).toBe(stdout.length - 1);
    expect(server.requests[0]?.body).not.toHaveProperty('stream');
  });
});

describe('an interrupted answer', () => {
  test('Ctrl-C keeps the text shown so far, and ends with one line and exit code 130', async () => {
    const closed = Promise.withResolvers<void>();
    await using server = await modelThat((response) => {
      response.on('close', closed.resolve);
      writePiece(response, delta({ content: 'On and ' }));
    });
    const { exitCode, stdout, stderr } = await runProcess({
      folder,
      args: ['Please'],
      environment: { OPENAI_BASE_URL: server.baseURL },
      whileRunning: (assistant) => assistant.waitFor(/^On and $/).then(() => assistant.send('SIGINT')),
    });
    expect([exitCode, stdout, stderr]).toEqual([
      130,
      'On and \n',
      expect.stringMatching(/^assistant: .*aborted.*\n$/),
    ]);
    await closed.promise;
  });

  test('a closed connection ends with one line and exit code 1', async () => {
    await using server = await modelThat((response) => {
      writePiece(response, delta({ content: 'On and ' }));
      response.write('\n', () => response.destroy());
    });
    const { exitCode, stdout, stderr } = await ask(server);
    expect([exitCode, stdout]).toEqual([1, 'On and \n']);
    expect(stderr).toMatch(/^assistant: LLM call failed: [^\n]+\n$/);
  });
});
