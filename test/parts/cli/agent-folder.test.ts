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

/** The error output of the command for an untrusted folder. */
async function told(folder: string, ...args: readonly string[]): Promise<string> {
  const { code, error } = await runCommand(['agent', folder, '--offline', ...args], folder);
  expect(code).toBe(1);
  expect(error).not.toMatch(/node:|^ +at /m);
  return error.replaceAll(folder, '.');
}

test('toolwright agent rejects a skill folder that is a link out of the agent’s folder', async () => {
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
    './.toolwright/skills is a link to a place outside the folder: remove it',
  );
});

test('toolwright agent refuses to work in a folder that contains its sessions or its approvals', async () => {
  const config = { toolboxes: ['files'], permissions: { file: 'approvals.json' } };
  const folder = newFolder({ 'agent.json': JSON.stringify(config) });
  expect(await told(folder, '--config', 'agent.json')).toContain(
    'the state of this session (./approvals.json) is in .',
  );
  process.env.XDG_STATE_HOME = join(folder, 'state');
  expect(await told(folder)).toContain('set XDG_STATE_HOME or permissions.file to a path outside');
});

test('toolwright agent reports a folder’s file that links elsewhere in one line, and does not read it', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, '.toolwright'));
  symlinkSync('/dev/zero', join(folder, '.toolwright/agent.json'));
  expect(await told(folder)).toContain('./.toolwright/agent.json: it is a link that leads out of .');
});

test('toolwright agent reports errors of a configuration file with its name and its own indexes', async () => {
  const files = { files: { root: '/nowhere/at/all' } };
  const rules = [{ decision: 'deny', path: 'a' }, { decision: 'never' }];
  const folder = newFolder({
    'root.json': JSON.stringify({ toolboxes: [files] }),
    'rules.json': JSON.stringify({ permissions: { rules } }),
  });
  const root = await told(folder, '--config', 'root.json');
  expect(root).toContain('./root.json, files: root is /nowhere/at/all, which does not exist');
  const wrong = await told(folder, '--config', 'rules.json');
  expect(wrong).toContain("./rules.json: rules[1].decision is 'never'");
  expect(wrong).toContain('Write instead: "decision": "allow" or "ask" or "deny"');
  expect(wrong).not.toMatch(/createAgent|rules\[4\]/);
});
