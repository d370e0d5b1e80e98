import { afterEach, expect, test } from '@jest/globals';
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
