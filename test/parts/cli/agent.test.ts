import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runCommandLine } from '../../../src/dev/cli/run-command-line.js';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { ProgramOutput } from '../../processes/program-output.js';
import { delta, events, LoopbackServer } from '../providers/loopback-server.js';
import { newFolder } from '../toolbox/files/folders.js';
import { EDIT, modelThat, newPlace, obedient, type Place, textOf } from './agent-place.js';
import { runCommand } from './run-command.js';

const environment = { ...process.env };
beforeEach(() => {
  for (const name of ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL']) delete process.env[name];
});
afterEach(() => {
  for (const name of ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL', 'XDG_STATE_HOME'])
    if (environment[name] === undefined) delete process.env[name];
    else process.env[name] = environment[name];
});

test('toolwright agent escapes control characters in the errors of a folder’s file', async () => {
  process.env.XDG_STATE_HOME = newFolder();
  const folder = newFolder({ '.toolwright/agent.json': JSON.stringify({ '\u001b[2J\u001b[H': 1 }) });
  const { code, error } = await runCommand(['agent', folder, '--offline'], folder);
  expect(code).toBe(1);
  expect(error).toContain('\\u001b[2J\\u001b[H is not an option of createAgent');
  expect(error).not.toContain('\u001b');
});

test.each([
  ['toolboxes', 'files', /toolboxes is 'files'/],
  ['permissions', 'read-only', /permissions is 'read-only'/],
  ['permissions', { rules: { decision: 'deny', path: '**' } }, /rules/],
])('toolwright agent refuses a configuration whose %s are %j', async (option, value, told) => {
  process.env.XDG_STATE_HOME = newFolder();
  const folder = newFolder({ 'agent.json': JSON.stringify({ [option]: value }) });
  const { code, error } = await runCommand(['agent', folder, '--offline', '--config', 'agent.json'], folder);
  expect([code, error]).toEqual([1, expect.stringMatching(told)]);
});

test('toolwright agent refuses a pending approval and exits if the user presses Ctrl-D', async () => {
  process.env.XDG_STATE_HOME = newFolder();
  const folder = newFolder({ 'a.txt': 'one\n' });
  const call = { name: 'write_file', arguments: '{"path":"b.txt","text":"b"}' };
  await using server = await LoopbackServer.start((response, request) => {
    const last = (request.body.messages as { role: string; content: string }[]).at(-1);
    const said =
      last?.role === 'tool'
        ? [delta({ content: `It says: ${last.content}` }), delta({}, 'stop')]
        : [
            delta({ tool_calls: [{ index: 0, id: 'c1', type: 'function', function: call }] }),
            delta({}, 'tool_calls'),
          ];
    events(said)(response, request);
  });
  const input = new PassThrough();
  let shown = '';
  const show = (text: string): void => {
    shown += text;
    // The question itself is printed after the details of the call.
    if (/^ {2}.*mode 'ask' asks about it/m.test(text)) void setImmediate().then(() => input.write('\u0004'));
  };
  const environment = { folder, input, isTerminal: true, out: show, error: show };
  const ending = runCommandLine(
    ['agent', '--url', server.baseURL, '--model', 'm', '--interactive'],
    environment,
  );
  input.write('Write it\n');
  expect(await ending).toBe(0);
  expect(shown).toContain('no user is available to answer');
});

/** Runs the command at a terminal, with keys that are pressed before the first reply of the model. */
async function atTerminal(prompt: string, earlier: string) {
  const place = newPlace({ 'a.txt': 'one\ntwo\n' });
  process.env.XDG_STATE_HOME = place.state;
  const input = new PassThrough();
  let isFirst = true;
  const server = await modelThat((last) => {
    if (isFirst) input.write(earlier);
    isFirst = false;
    return obedient(last);
  });
  const shown = new ProgramOutput();
  const show = (text: string) => shown.add('stdout', text);
  const environment = { folder: place.folder, input, isTerminal: true, out: show, error: show };
  const args = ['agent', '--url', server.baseURL, '--model', 'm', '--interactive'];
  const ending = runCommandLine(args, environment);
  input.write(`${prompt}\r`);
  const end = async () => {
    input.write('/exit\r');
    await ending;
    await server[Symbol.asyncDispose]();
  };
  return { place, input, shown, [Symbol.asyncDispose]: end };
}

/** The question itself is printed to standard error a few turns of the event loop after the details of the call. */
async function questionShown(shown: ProgramOutput): Promise<void> {
  await shown.waitFor(/mode 'ask' asks about it/);
  for (let turns = 0; turns < 20; turns += 1) await setImmediate();
}

test('toolwright agent takes a line that was written before a question as the next prompt, not as the answer', async () => {
  await using terminal = await atTerminal(EDIT, 'y\rhal');
  const { place, input, shown } = terminal;
  await questionShown(shown);
  input.write('no\r');
  await shown.waitFor(/It says: .*refused/);
  await shown.waitFor(/You said: y/);
  // The line that had no end yet is still there.
  input.write('f a line\r');
  await shown.waitFor(/You said: half a line/);
  expect(textOf(place, 'a.txt')).toBe('one\ntwo\n');
});

test('toolwright agent takes pasted lines as one prompt, and never as the answer to a later question', async () => {
  await using terminal = await atTerminal(EDIT, '\u001b[200~y\ry\u001b[201~');
  const { place, input, shown } = terminal;
  await questionShown(shown);
  input.write('no\r');
  await shown.waitFor(/It says: /);
  input.write('\r');
  await shown.waitFor(/You said: y\ny/);
  expect(textOf(place, 'a.txt')).toBe('one\ntwo\n');
});

/** Runs the command with lines from a pipe, and waits for its end. */
async function run({ folder, state }: Place, args: readonly string[], lines: readonly string[]) {
  process.env.XDG_STATE_HOME = state;
  const input = new PassThrough();
  input.end(lines.map((line) => `${line}\n`).join(''));
  return await runCommand(['agent', ...args], folder, { input });
}

test('toolwright agent refuses approvals if its input is a pipe, and tells the model why', async () => {
  const place = newPlace({ 'a.txt': 'one\ntwo\n' });
  await using server = await modelThat(obedient);
  const { code, out, error } = await run(
    place,
    ['--url', server.baseURL, '--model', 'm'],
    [EDIT, 'read_file {"path":"a.txt"}'],
  );
  expect(code).toBe(0);
  expect(out).toContain("The tool 'edit_file' was refused: no user is available to answer");
  // The next line was a prompt, not an answer.
  expect(out).toContain('1\tone');
  expect(error).toContain('+three');
  expect(textOf(place, 'a.txt')).toBe('one\ntwo\n');
});

test('toolwright agent applies only the restrictions of an untrusted folder’s configuration', async () => {
  const place = newPlace({ 'a.txt': 'one\ntwo\n', 'b.txt': 'two\n' });
  mkdirSync(join(place.folder, '.toolwright'));
  const rules = [
    { decision: 'allow', path: '**' },
    { decision: 'deny', path: 'b.txt', reason: 'b is not yours' },
  ];
  const own = { permissions: { mode: 'auto', rules }, systemPrompt: 'Obey.' };
  writeFileSync(join(place.folder, '.toolwright', 'agent.json'), JSON.stringify(own));
  await using server = await modelThat(obedient);
  const { out, error } = await run(
    place,
    ['--url', server.baseURL, '--model', 'm'],
    [EDIT, EDIT.replace('a.txt', 'b.txt')],
  );
  expect(error).toContain("mode 'ask' asks about it");
  expect(out).toContain('b is not yours');
  expect([textOf(place, 'a.txt'), textOf(place, 'b.txt')]).toEqual(['one\ntwo\n', 'two\n']);
  expect(JSON.stringify(server.requests[0]?.body)).not.toContain('Obey.');
});

test('toolwright agent --mode auto edits files and shows the changes, but asks before it fetches a page', async () => {
  const place = newPlace({ 'a.txt': 'one\ntwo\n' });
  await using server = await modelThat(obedient);
  const args = ['--url', server.baseURL, '--model', 'm', '--mode'];
  const auto = await run(place, [...args, 'auto'], [EDIT, 'web_fetch {"url":"https://example.com/"}']);
  expect(textOf(place, 'a.txt')).toBe('one\nthree\n');
  expect(auto.error).toContain('  +three\n');
  expect(auto.error).toContain('? approval: web_fetch');
  expect(auto.error).toContain('content from the network is not trusted');
  const reading = await run(place, [...args, 'read-only'], [EDIT.replace('two', 'one')]);
  expect(reading.out).toContain("mode 'read-only' denies it");
  expect(textOf(place, 'a.txt')).toBe('one\nthree\n');
});

test('toolwright agent works in the folder of the configuration file, unless the command line names one', async () => {
  const place = newPlace({ 'a.txt': 'here\n', 'sub/a.txt': 'there\n' });
  await using server = await modelThat(obedient);
  const config = { provider: { openai: { baseURL: server.baseURL } }, model: 'm', folder: 'sub' };
  writeFileSync(join(place.folder, 'my-agent.json'), JSON.stringify(config));
  const read = ['read_file {"path":"a.txt"}'];
  expect((await run(place, ['--config', 'my-agent.json'], read)).out).toContain('there');
  expect((await run(place, ['.', '--config', 'my-agent.json'], read)).out).toContain('here');
  writeFileSync(join(place.folder, 'my-agent.json'), JSON.stringify({ ...config, folder: 'nowhere' }));
  expect(await run(place, ['--config', 'my-agent.json'], [])).toMatchObject({
    code: 1,
    error: expect.stringContaining('there is no folder'),
  });
});

test('toolwright agent counts calls of the model, but not budget questions, as calls', async () => {
  const place = newPlace({ 'a.txt': 'one\n' });
  await using server = await modelThat(obedient);
  const config = {
    provider: { openai: { baseURL: server.baseURL } },
    model: 'm',
    budget: { steps: 1, whenSpent: 'ask' },
  };
  writeFileSync(join(place.state, 'c.json'), JSON.stringify(config));
  const lines = ['read_file {"path":"a.txt"}', '1', '/cost'];
  const { out, error } = await run(place, ['--config', join(place.state, 'c.json'), '--interactive'], lines);
  expect(error).toContain('? question: budget');
  expect(out).toContain('1 turn, 1 call');
});

test('toolwright agent uses the model, toolboxes and rules of a configuration file', async () => {
  const place = newPlace({ 'a.txt': 'one\ntwo\n' });
  await using server = await modelThat(obedient);
  const file = join(place.state, 'my-agent.json');
  const config = {
    provider: { openai: { baseURL: server.baseURL } },
    model: 'my-model',
    toolboxes: ['files'],
    permissions: { rules: [{ decision: 'allow', path: 'a.txt' }] },
  };
  writeFileSync(file, JSON.stringify(config));
  const { out } = await run(place, ['--config', file], ['/tools', EDIT, '/undo list', '/undo']);
  expect(out).toContain('`edit_file`');
  expect(out).not.toContain('`run_command`');
  expect(out).toMatch(/Z edit a\.txt\nundone: edit a\.txt/);
  expect(server.requests[0]?.body.model).toBe('my-model');
  writeFileSync(file, JSON.stringify({ ...config, toolboxs: [] }));
  expect(await run(place, ['--config', file], [])).toMatchObject({
    code: 1,
    error: expect.stringMatching(/my-agent\.json[\s\S]*toolboxes/),
  });
});

test('toolwright agent reports wrong command lines and unusable state folders in one line', async () => {
  const place = newPlace();
  const fault = async (...args: readonly string[]) => {
    const { code, error } = await run(place, args, []);
    return [code, error.trim()];
  };
  const told = (code: number, text: string) => [code, expect.stringContaining(text)];
  expect(await fault('nowhere', '--offline')).toEqual(told(1, 'there is no folder'));
  expect(await fault('--continue', '--offline')).toEqual(told(1, 'there is no session in'));
  expect(await fault('--offline', '--mode', 'all')).toEqual(told(2, '--mode must be one of'));
  expect(await fault('--offline', '--session', '../x')).toEqual(told(2, '--session must be a name'));
  expect(await fault('--url', 'http://127.0.0.1:1/v1')).toEqual(told(2, 'no model is configured'));
  const unusable = { ...place, state: '/dev/null/x' };
  for (const args of [['--offline'], ['--sessions']])
    expect(await run(unusable, args, [])).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^toolwright: sessions are stored in \/dev\/null\/x.*cannot be used.*\n$/),
    });
  // A session without messages is not stored.
  expect((await run(place, ['--sessions'], [])).out).toBe('');
});

test('toolwright agent reports unreadable session metadata, preserves it, and continues the session', async () => {
  const place = newPlace();
  expect((await run(place, ['--offline', '--session', 's1'], ['Hello'])).code).toBe(0);
  const folder = join(place.state, 'toolwright', 'agent', 's1');
  writeFileSync(join(folder, 'session.json'), '{"folder": "/ho');
  const listed = await run(place, ['--sessions'], []);
  expect(listed.out).toBe('');
  expect(listed.error).toMatch(/^toolwright: .*s1\/session\.json.* --session s1 continues the session\n$/);
  expect(await run(place, ['--offline', '--continue'], [])).toMatchObject({
    code: 1,
    error: expect.stringContaining('--session s1 continues the session'),
  });
  // No message is sent, so everything in the session stays.
  const left = await run(place, ['--offline', '--session', 's1'], []);
  expect(left.error).toMatch(
    /^toolwright: .*session\.json cannot be read and was renamed to session\.json\.broken-\d+: .*$/m,
  );
  const again = await run(place, ['--offline', '--session', 's1'], ['Again']);
  expect([again.code, again.out + again.error]).toEqual([0, expect.stringContaining('1 turns so far')]);
  expect(again.error).not.toContain('broken');
  const kept = readdirSync(folder).find((name) => name.startsWith('session.json.broken-')) ?? '';
  expect(readFileSync(join(folder, kept), 'utf8')).toBe('{"folder": "/ho');
  expect((await run(place, ['--sessions'], [])).out).toMatch(/^s1 .* \(title lost\)\n$/);
});

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)(
  'toolwright agent ends the command that runs on %s, and exits with %i',
  async (signal, exitCode) => {
    const place = newPlace();
    await using server = await modelThat(obedient);
    const main = builtFile('dist/src/dev/cli/main.js');
    const args = [main, 'agent', '--url', server.baseURL, '--model', 'm', '--interactive'];
    const environment = { XDG_STATE_HOME: place.state };
    await using process = new NodeProcess(args, { folder: place.folder, environment });
    const command = 'echo "pid $$."; exec sleep 100';
    process.write(`run_command ${JSON.stringify({ command })}\ny\n`);
    const [, pid] = await process.waitFor(/pid (\d+)\./);
    process.send(signal);
    expect((await process.ended()).exitCode).toBe(exitCode);
    expect(() => globalThis.process.kill(Number(pid), 0)).toThrow('ESRCH');
  },
);
