import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { completion, json, LoopbackServer, page } from '../parts/providers/loopback-server.js';
import type { NodeRun } from '../processes/run-node.js';
import { type AssistantStart, runHere, runProcess } from './assistant-runs.js';

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

function call(id: string, name: string, args: unknown): unknown {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(args) } };
}

/** A model that makes these calls and then replies `Done.`. */
function modelThatCalls(...calls: unknown[]): Promise<LoopbackServer> {
  const replies = [
    completion({ role: 'assistant', content: null, tool_calls: calls }, { finish_reason: 'tool_calls' }),
    completion({ role: 'assistant', content: 'Done.' }),
  ];
  return LoopbackServer.start((response, request) => json(replies.shift())(response, request));
}

function answersOf({ requests }: LoopbackServer): readonly string[] {
  const messages = requests.at(-1)?.body.messages as readonly { role: string; content: string }[];
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
}

describe('the assistant with a model behind Chat Completions', () => {
  test('sends a conversation with a tool call to the server and ends with the answer of the model', async () => {
    await using server = await modelThatCalls(call('c1', 'calculate', { expression: '6 * 7' }));
    const environment = { OPENAI_BASE_URL: server.baseURL, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'some-model' };
    const { exitCode, stdout, stderr } = await run({ args: ['What is six times seven?'], environment });
    expect(stdout).toMatch(/^✓ calculate \{"expression":"6 \* 7"\} \([\d.]+ m?s\)\nDone\.\n$/);
    expect([exitCode, stderr]).toEqual([0, '']);
    const [first] = server.requests;
    expect(first?.headers.authorization).toBe('Bearer k');
    expect(first?.body).toMatchObject({ model: 'some-model' });
    expect(JSON.stringify(first?.body.tools)).toContain('"search_notes"');
    expect(answersOf(server)).toEqual(['42']);
  });

  test('an invoice is written completely or not at all, and all faults are reported to the model', async () => {
    const lines = [{ description: 'Consulting', quantity: 3, unitPrice: 80.5 }];
    await using server = await modelThatCalls(
      call('c1', 'create_invoice', { customer: 'Mara', lines }),
      call('c2', 'create_invoice', { customer: 'Nobody', lines }),
      call('c3', 'create_invoice', { customer: 'Mara', lines: [{ description: '', quantity: 0 }] }),
      call('c4', 'add_contact', { name: 'Eva', email: 'no address', kind: 'friend' }),
      call('c5', 'list_invoices', { customer: 'Harbour', state: 'open' }),
    );
    const { stdout } = await run({ args: ['Bill Mara'], environment: { OPENAI_BASE_URL: server.baseURL } });
    const [created, nobody, invalid, contact, listed] = answersOf(server);
    expect(created).toMatch(/^Created INV-0005 to Mara Lindqvist, €241\.50, open, due \d{4}-\d\d-\d\d\.$/);
    expect(nobody).toBe("There is no contact 'Nobody'. Add it first.");
    for (const path of ['lines.0.description', 'lines.0.quantity', 'lines.0.unitPrice'])
      expect(invalid).toContain(path);
    expect(contact).toMatch(/email[\s\S]*kind|kind[\s\S]*email/);
    expect(listed).toMatch(/^2 invoices, together €691\.50:/);
    expect(stdout).toMatch(/^ {2}Created INV-0005/m);
  });

  test('no note name leads out of the folder: paths, links and hidden files are refused', async () => {
    const notes = join(folder, '.assistant', 'notes');
    mkdirSync(notes, { recursive: true });
    for (const file of ['../../secret.md', '../secret.md', '.hidden.md'])
      writeFileSync(join(notes, file), 'TOP SECRET');
    symlinkSync(join(folder, 'secret.md'), join(notes, 'link.md'));
    const secret = join(folder, 'secret.md');
    const names = [
      '../secret',
      '../../secret.md',
      secret,
      'link',
      '..',
      '.hidden',
      'a\u0000b',
      '__proto__',
      ' ',
    ];
    await using server = await modelThatCalls(
      ...names.map((note, at) => call(`c${at}`, 'read_note', { note })),
    );
    await run({ args: ['Read them'], environment: { OPENAI_BASE_URL: server.baseURL } });
    const refusal = expect.stringMatching(/cannot be the name of a note|There is no note/);
    expect(answersOf(server)).toEqual(names.map(() => refusal));
  });

  test('a note title with path characters creates no file outside of the folder', async () => {
    await using server = await modelThatCalls(
      call('c1', 'add_note', { title: '../../Escape', text: 'x' }),
      call('c2', 'add_note', { title: '../..', text: 'x' }),
      call('c3', 'list_notes', {}),
    );
    await run({ args: ['Write it'], environment: { OPENAI_BASE_URL: server.baseURL } });
    const [outside, dots] = answersOf(server);
    expect(outside).toBe('Wrote the note escape.');
    expect(dots).toContain('cannot be the name of a note');
  });

  test('Ctrl-C aborts the run with one line and exit code 130', async () => {
    let interrupt = (): void => {};
    await using server = await LoopbackServer.start(() => interrupt());
    const { exitCode, stderr } = await runProcess({
      folder,
      args: ['Hello?'],
      environment: { OPENAI_BASE_URL: server.baseURL },
      whileRunning: (assistant) => {
        interrupt = () => assistant.send('SIGINT');
      },
    });
    expect([exitCode, stderr]).toEqual([130, expect.stringMatching(/^assistant: .*aborted.*\n$/)]);
  });
});

describe('an error that the user can fix is one line and a non-zero exit code', () => {
  test('a server that cannot be reached', async () => {
    const environment = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_API_KEY: 'k' };
    const { exitCode, stdout, stderr } = await run({ args: ['Hello'], environment });
    expect(stderr).toMatch(ONE_LINE);
    expect(stderr).toContain('http://127.0.0.1:1/v1');
    expect([exitCode, stdout]).toEqual([1, '']);
  });

  test('a base URL that is not an http address', async () => {
    const { exitCode, stderr } = await run({
      args: ['Hello'],
      environment: { OPENAI_BASE_URL: 'localhost' },
    });
    expect([exitCode, stderr]).toEqual([1, 'assistant: OPENAI_BASE_URL is not an http address: localhost\n']);
  });

  test('a rejected key; with --json the failed run is still JSON', async () => {
    const refused = json({ error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }, 401);
    await using server = await LoopbackServer.start(refused);
    const environment = { OPENAI_BASE_URL: server.baseURL, OPENAI_API_KEY: 'wrong' };
    const { exitCode, stdout, stderr } = await run({ args: ['--json', 'Hello'], environment });
    expect(stderr).toMatch(ONE_LINE);
    expect(stderr).toMatch(/401 .*key was refused/);
    expect(JSON.parse(stdout)).toMatchObject({
      status: 'failed',
      error: { name: 'ProviderFailed', code: 509 },
    });
    expect(exitCode).toBe(1);
  });

  test.each([
    ['refuses the request', json({ error: { message: 'no such model' } }, 404)],
    ['answers with a web page', page('<html><title>Hi</title></html>', 'text/html')],
    ['answers with an empty object', json({})],
  ])('a model that %s', async (_what, answer) => {
    await using server = await LoopbackServer.start(answer);
    const { exitCode, stderr } = await run({
      args: ['Hi'],
      environment: { OPENAI_BASE_URL: server.baseURL },
    });
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
  });

  test('a data folder that is a file, or whose database is invalid', async () => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'broken'));
    writeFileSync(
      join(folder, 'broken', 'assistant.db'),
      'no database at all, but long enough to be looked at',
    );
    for (const data of ['file', 'file/inside', 'broken']) {
      const { exitCode, stdout, stderr } = await run({ args: ['--data', data, 'list the notes'] });
      expect(stderr).toMatch(ONE_LINE);
      expect(stderr).toContain(`cannot use the data folder ${join(folder, data)}: `);
      expect([exitCode, stdout]).toEqual([1, '']);
    }
  });
});
