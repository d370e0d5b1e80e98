import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { EDIT, modelThat, newPlace, obedient, type Place, textOf } from '../parts/cli/agent-place.js';
import { newFolder } from '../parts/toolbox/files/folders.js';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';

const MAIN = builtFile('dist/src/dev/cli/main.js');

function agent({ folder, state }: Place, ...args: readonly string[]): NodeProcess {
  return new NodeProcess([MAIN, 'agent', ...args], {
    folder,
    environment: { PATH: process.env.PATH ?? '', HOME: state, XDG_STATE_HOME: state, OPENAI_API_KEY: 'none' },
  });
}

/** Writes the lines, closes the input and waits for the exit. */
async function run(place: Place, args: readonly string[], lines: readonly string[]) {
  await using child = agent(place, ...args);
  child.write(lines.map((line) => `${line}\n`).join(''));
  child.endInput();
  return await child.ended();
}

/** The command lines of all processes on this machine, if /proc exists. */
function commandLines(): readonly string[] {
  if (!existsSync('/proc/self/cmdline')) return [];
  return readdirSync('/proc').flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')] : [];
    } catch {
      return [];
    }
  });
}

describe('toolwright agent', () => {
  test('shows a diff, edits after an approval, undoes it, and continues the session in another process', async () => {
    const place = newPlace({ 'a.txt': 'one\ntwo\n' });
    await using server = await modelThat(obedient);
    const args = ['--url', server.baseURL, '--model', 'gpt-5', '--interactive'];
    await using child = agent(place, ...args, '--session', 's1');
    child.write(`${EDIT}\n`);
    await child.waitFor(/Run edit_file\?/);
    expect(child.stderr).toMatch(
      / {2}--- a\.txt.*\n {2}\+\+\+ a\.txt.*\n {2}@@.*\n {3}one\n {2}-two\n {2}\+three\n/,
    );
    expect(child.stderr).toContain("changes 'a.txt': mode 'ask' asks about it");
    expect(textOf(place, 'a.txt')).toBe('one\ntwo\n');
    child.write('y\n');
    await child.waitFor(/It says: a\.txt: changed/);
    expect(textOf(place, 'a.txt')).toBe('one\nthree\n');
    child.write('/cost\n');
    await child.waitFor(/1 turn, 1 call, 200 tokens in, 20 out: \$0\.000[45]/);
    child.write('write_tasks {"tasks":[{"text":"Look","status":"done"},{"text":"Test"}]}\n');
    await child.waitFor(/\| \[x\] Look\n {2}\| \[ \] Test/);
    child.endInput();
    expect((await child.ended()).exitCode).toBe(0);
    expect(child.stderr).not.toContain('Run write_tasks');
    expect(child.stderr.match(/· edit_file/g)).toHaveLength(1);

    await using next = agent(place, ...args, '--continue');
    await next.waitFor(/session s1.*2 turns so far/s);
    next.write('/undo\n');
    await next.waitFor(/undone: edit a\.txt \(a\.txt\)/);
    expect(textOf(place, 'a.txt')).toBe('one\ntwo\n');
    next.endInput();
    await next.ended();
    // An undo is also reported to the model if its process sent no request.
    await using third = agent(place, ...args, '--continue');
    third.write('and now?\n/cost\n');
    await third.waitFor(/You said: \[The user has undone: edit a\.txt \(a\.txt\)\]\s+and now\?/);
    await third.waitFor(/3 turns, 2 calls/);
    third.endInput();
    const { stdout, stderr } = await third.ended();
    expect(stdout + stderr).not.toContain('\u001b');
    const sent = server.requests.at(-1)?.body.messages as { role: string; content: string }[];
    const turn = ['user', 'assistant', 'tool', 'assistant'];
    expect(sent.map(({ role }) => role)).toEqual(['system', ...turn, ...turn, 'user']);
    const listed = await run(place, ['--sessions'], []);
    expect(listed.stdout).toMatch(/^s1 {2}\d{4}-.*edit_file/);
    // The session is stored outside of the folder, readable by the user only.
    expect(existsSync(join(place.folder, 'session.sqlite'))).toBe(false);
    expect(statSync(join(place.state, 'toolwright', 'agent', 's1')).mode & 0o77).toBe(0);
  });

  test('stores an approval for the session, lists it, and revokes it', async () => {
    const place = newPlace({ 'a.txt': 'one\ntwo\n' });
    await using server = await modelThat(obedient);
    const args = ['--url', server.baseURL, '--model', 'm', '--interactive', '--session'];
    const back = EDIT.replace('two', '…').replace('three', 'two').replace('…', 'three');
    await using child = agent(place, ...args, 's1');
    child.write(`${EDIT}\n`);
    await child.waitFor(
      /Run edit_file\? \[y\]es, \[a\]lways in this session, always for this \[u\]ser in this folder, \[n\]o/,
    );
    child.write('a\n');
    await child.waitFor(/It says: a\.txt: changed/);
    child.write(`${back}\n/yes\n`);
    await child.waitFor(/\w{12} \{"tool":"edit_file","action":"write","path":"a\.txt"\} in session s1/);
    expect(textOf(place, 'a.txt')).toBe('one\ntwo\n');
    expect(child.stderr.match(/Run edit_file\?/g)).toHaveLength(1);
    const kept = JSON.parse(readFileSync(join(place.state, 'toolwright', 'permissions.json'), 'utf8'));
    child.write(`/yes revoke ${kept.entries[0].id}\n`);
    await child.waitFor(/was revoked/);
    child.write(`${EDIT}\n`);
    await child.waitFor(/Run edit_file\?.*Run edit_file\?/s);
    child.write('u\n');
    await child.waitFor(/changed.*changed.*changed/s);
    child.endInput();
    await child.ended();

    // An approval for the user holds in other sessions on this folder, and in no other folder.
    const other = await run(place, [...args, 's2'], [back]);
    expect(other.stderr).not.toContain('Run edit_file?');
    const elsewhere = newPlace({ 'a.txt': 'one\ntwo\n' });
    const asked = await run({ ...elsewhere, state: place.state }, [...args, 's3'], [EDIT]);
    expect(asked.stderr).toContain('Run edit_file?');
    expect(textOf(elsewhere, 'a.txt')).toBe('one\ntwo\n');
  });

  test('Ctrl-C aborts a turn and all processes of its command, and the session continues', async () => {
    const place = newPlace();
    await using server = await modelThat(obedient);
    await using child = agent(place, '--url', server.baseURL, '--model', 'm', '--mode', 'auto');
    child.write('run_command {"command":"echo begun; sleep 1000.0517"}\n');
    await child.waitFor(/\| begun/);
    child.send('SIGINT');
    await child.waitFor(/\[aborted/);
    // On a busy machine, the killed processes end later than the turn.
    while (commandLines().some((line) => line.includes('1000.0517'))) await pause(20);
    child.write('still there?\n');
    await child.waitFor(/You said: still there\?/);
    // Ctrl-C ends the command once the turn has ended, too.
    await child.waitFor(/\[aborted.*> .*> $/s);
    child.send('SIGINT');
    expect((await child.ended()).exitCode).toBe(0);
  });

  /** A session whose process is killed while its command runs; each run of the command adds a line to `here`. */
  async function killedInCall(place: Place, args: readonly string[]): Promise<void> {
    const config = join(place.state, 'short.json');
    writeFileSync(config, JSON.stringify({ conversations: { leaseMs: 1_000 } }));
    await using child = agent(place, ...args, '--config', config, '--interactive');
    const command = 'echo once >> here; echo begun; until [ -e over ]; do sleep 0.1; done';
    child.write(`run_command ${JSON.stringify({ command })}\n`);
    await child.waitFor(/\| begun/);
    await child.kill();
    writeFileSync(join(place.folder, 'over'), '');
  }

  test.each([
    ['done, with its result', ['what?', 'y 3 files'], /It says: 3 files/, 1],
    [
      'done, without a result',
      ['y', ''],
      /It says: The user reports that the call was done\. Its result is unknown\./,
      1,
    ],
    ['not done, so that it runs again', ['n'], /It says: begun/, 2],
    ['a refusal', ['r'], /was refused: its process ended during the call: the call may have been done/, 1],
  ])(
    'continues a turn whose process was killed, and asks for the outcome of its call: %s',
    async (_, answers, told, times) => {
      const place = newPlace();
      await using server = await modelThat(obedient);
      const args = ['--url', server.baseURL, '--model', 'm', '--mode', 'auto'];
      await killedInCall(place, args);
      await using next = agent(place, ...args, '--interactive', '--continue');
      await next.waitFor(
        /Was run_command .* done\? \[y\] it was done \/ \[n\] not done, run it again \/ \[r\] refuse:/,
      );
      next.write(answers.map((answer) => `${answer}\n`).join(''));
      await next.waitFor(told);
      next.endInput();
      expect((await next.ended()).exitCode).toBe(0);
      expect(textOf(place, 'here')).toBe('once\n'.repeat(times));
    },
  );

  test('reports the outcome as unknown if the process was killed and nobody answers', async () => {
    const place = newPlace();
    await using server = await modelThat(obedient);
    const args = ['--url', server.baseURL, '--model', 'm', '--mode', 'auto'];
    await killedInCall(place, args);
    const piped = await run(place, [...args, '--continue'], []);
    expect(piped.stdout).toContain('It is not known whether it was executed.');
    expect(piped.stdout).not.toContain('refused');
    // Also if the question was shown, and the input ended without an answer.
    const other = newPlace();
    await killedInCall(other, args);
    const asked = await run(other, [...args, '--interactive', '--continue'], []);
    expect(asked.stderr).toContain('Was run_command');
    expect(asked.stdout).toContain('It is not known whether it was executed.');
    expect([textOf(place, 'here'), textOf(other, 'here')]).toEqual(['once\n', 'once\n']);
  });

  test('repeats the call of a killed process without a question if onUnknown is rerun', async () => {
    const place = newPlace();
    await using server = await modelThat(obedient);
    const args = ['--url', server.baseURL, '--model', 'm', '--mode', 'auto'];
    await killedInCall(place, args);
    const config = join(place.state, 'again.json');
    writeFileSync(config, JSON.stringify({ conversations: { onUnknown: 'rerun' } }));
    const { stdout, stderr } = await run(place, [...args, '--config', config, '--continue'], []);
    expect(stdout).toContain('It says: begun');
    expect(stderr).not.toContain('Was run_command');
    expect(textOf(place, 'here')).toBe('once\nonce\n');
  });

  test('refuses to undo a change to a file that was edited since, and explains how to skip it', async () => {
    const place = newPlace({ 'a.txt': 'one\ntwo\n' });
    await using server = await modelThat(obedient);
    await using child = agent(place, '--url', server.baseURL, '--model', 'm', '--mode', 'auto');
    child.write(`${EDIT}\n`);
    await child.waitFor(/It says: a\.txt: changed/);
    writeFileSync(join(place.folder, 'a.txt'), 'mine\n');
    child.write('/undo\n');
    await child.waitFor(
      /edit a\.txt: 'a\.txt' was changed again afterwards; the change was not undone\. \/undo skip/,
    );
    child.write('/undo skip\n/undo\n/nonsense\n/help\n');
    await child.waitFor(/this change stays: edit a\.txt/);
    await child.waitFor(/there is no change to undo/);
    await child.waitFor(/there is no command \/nonsense/);
    await child.waitFor(/\/undo +reverts the last change/);
    expect(textOf(place, 'a.txt')).toBe('mine\n');
  });

  test('refuses a session that is open in another process, or belongs to another folder', async () => {
    const place = newPlace();
    const args = ['--offline', '--session', 's1'];
    await using open = agent(place, ...args);
    await open.waitFor(/session s1/);
    const refused = await run(place, args, []);
    expect([refused.exitCode, refused.stderr.trim()]).toEqual([
      1,
      expect.stringContaining('is open in process'),
    ]);
    open.write('hello\n');
    open.endInput();
    await open.ended();
    const elsewhere = await run({ folder: newFolder(), state: place.state }, args, []);
    expect(elsewhere.stderr).toContain(`the session s1 belongs to`);
  });
});
