import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { newFolder } from '../toolbox/files/folders.js';
import { runCommand } from './run-command.js';

const { XDG_STATE_HOME, XDG_CONFIG_HOME } = process.env;
beforeEach(() => {
  process.env.XDG_STATE_HOME = newFolder();
  process.env.XDG_CONFIG_HOME = newFolder();
});
afterEach(() => {
  for (const [name, value] of Object.entries({ XDG_STATE_HOME, XDG_CONFIG_HOME }))
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
});

/** What the command says over a folder that a stranger has made. */
async function told(folder: string, ...args: readonly string[]): Promise<string> {
  const { code, error } = await runCommand(['agent', folder, '--offline', ...args], folder);
  expect(code).toBe(1);
  expect(error).not.toMatch(/node:|^ +at /m);
  return error.replaceAll(folder, '.');
}

test('toolwright agent makes no skill of what a link in the folder leads to', async () => {
  const folder = newFolder({ 'SKILL.md': '---\nname: z\ndescription: Z\n---\n', '.env': 'secret' });
  mkdirSync(join(folder, '.toolwright/skills'), { recursive: true });
  symlinkSync('../..', join(folder, '.toolwright/skills/z'));
  expect(await told(folder)).toContain(
    'z/SKILL.md: its folder is a link that leads out of ./.toolwright/skills',
  );
  const other = newFolder();
  mkdirSync(join(other, '.toolwright'));
  symlinkSync(newFolder(), join(other, '.toolwright/skills'));
  expect(await told(other)).toContain(
    './.toolwright/skills is a link that leads out of the folder: remove it',
  );
});

test('toolwright agent does not work where it could change its own sessions', async () => {
  const folder = newFolder();
  process.env.XDG_STATE_HOME = join(folder, 'state');
  expect(await told(folder)).toContain('set XDG_STATE_HOME to a folder outside');
});

test('toolwright agent tells of a folder’s file that is a link elsewhere in one line, and reads nothing of it', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, '.toolwright'));
  symlinkSync('/dev/zero', join(folder, '.toolwright/agent.json'));
  expect(await told(folder)).toContain('./.toolwright/agent.json: it is a link that leads out of .');
});

test('toolwright agent tells mistakes of a configuration file with its name, and counts as it does', async () => {
  const files = { files: { root: '/nowhere/at/all' } };
  const rules = [{ decision: 'deny', path: 'a' }, { decision: 'never' }];
  const folder = newFolder({
    'root.json': JSON.stringify({ toolboxes: [files] }),
    'rules.json': JSON.stringify({ permissions: { rules } }),
  });
  const root = await told(folder, '--config', 'root.json');
  expect(root).toContain('./root.json, files: root names /nowhere/at/all, which is not there');
  const wrong = await told(folder, '--config', 'rules.json');
  expect(wrong).toContain("./rules.json: rules[1].decision is 'never'");
  expect(wrong).toContain('Write instead: "decision": "allow" or "ask" or "deny"');
  expect(wrong).not.toMatch(/createAgent|rules\[4\]/);
});
