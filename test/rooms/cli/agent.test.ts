import { PassThrough } from 'node:stream';
import { afterEach, expect, test } from '@jest/globals';
import { runCommandLine } from '../../../src/cli/run-command-line.js';
import { delta, events, LoopbackServer } from '../providers/loopback-server.js';
import { newFolder } from '../toolbox/files/folders.js';
import { runCommand } from './run-command.js';

const { XDG_STATE_HOME } = process.env;
afterEach(() => {
  if (XDG_STATE_HOME === undefined) delete process.env.XDG_STATE_HOME;
  else process.env.XDG_STATE_HOME = XDG_STATE_HOME;
});

test('toolwright agent shows what is wrong with a folder’s file without anything that a terminal would obey', async () => {
  process.env.XDG_STATE_HOME = newFolder();
  const folder = newFolder({ '.toolwright/agent.json': JSON.stringify({ '\u001b[2J\u001b[H': 1 }) });
  const { code, error } = await runCommand(['agent', folder, '--offline'], folder);
  expect(code).toBe(1);
  expect(error).toContain('\\u001b[2J\\u001b[H is no option of createAgent');
  expect(error).not.toContain('\u001b');
});

test.each([
  ['toolboxes', 'files', /toolboxes is 'files'/],
  ['permissions', 'read-only', /permissions is 'read-only'/],
  ['permissions', { rules: { decision: 'deny', path: '**' } }, /rules/],
])(
  'toolwright agent refuses a configuration whose %s are %j, and leaves nothing of it out',
  async (option, value, told) => {
    process.env.XDG_STATE_HOME = newFolder();
    const folder = newFolder({ 'agent.json': JSON.stringify({ [option]: value }) });
    const { code, error } = await runCommand(
      ['agent', folder, '--offline', '--config', 'agent.json'],
      folder,
    );
    expect([code, error]).toEqual([1, expect.stringMatching(told)]);
  },
);

test('toolwright agent refuses what it asks about, and ends, where somebody leaves with Ctrl-D', async () => {
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
    // The question itself stands on the terminal, behind what it is about.
    if (/^ {2}.*mode 'ask' asks about it/m.test(text)) setImmediate(() => input.write('\u0004'));
  };
  const surroundings = { folder, input, isTerminal: true, out: show, error: show };
  const ending = runCommandLine(
    ['agent', '--url', server.baseURL, '--model', 'm', '--interactive'],
    surroundings,
  );
  input.write('Write it\n');
  expect(await ending).toBe(0);
  expect(shown).toContain('nobody is there who could answer');
});
