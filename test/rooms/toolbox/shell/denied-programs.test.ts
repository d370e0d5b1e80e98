import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { Permissions } from 'toolwright/toolbox/permissions';
import { shellTools } from 'toolwright/toolbox/shell';
import { newFolder } from '../files/folders.js';

/** A step of each life cycle removes, and so does a script that is named `x`, as the command of npm that executes. */
const SCRIPTS = Object.fromEntries(
  ['x', 'preinstall', 'prepack', 'preversion', 'prepublishOnly'].map((name) => [name, 'rm v1']),
);

let root: string;
let tools: ToolRegistry;

beforeEach(() => {
  const scripts = { ...SCRIPTS, fine: 'echo fine' };
  root = newFolder({ 'package.json': JSON.stringify({ name: 'p', version: '1.0.0', scripts }), v1: 'kept' });
  tools = new ToolRegistry({
    policy: new Permissions({ mode: 'auto', rules: [{ decision: 'deny', command: 'rm' }] }).policy,
  }).register(...shellTools({ folder: root }));
});

async function decisionOn(command: string): Promise<string> {
  const tool = tools.offered('run_command');
  if (tool === undefined) throw new Error('there is no shell');
  const permissions = new Permissions({ mode: 'auto', rules: [{ decision: 'deny', command: 'rm' }] });
  const request = { tool, arguments: { command }, context: { conversationId: 'c' } as never };
  return (await permissions.explain(request)).decision;
}

describe('Permissions that deny a program', () => {
  test.each([
    'jobs -x rm v1',
    'node --run x',
    'node --run=x',
    'npm run x',
    'npm install',
    'npm i',
    'npm ci',
    'npm rebuild',
    'npm pack',
    'npm publish',
    'npm version patch --no-git-tag-version',
    'npm explore p -- rm v1',
    'npm exe -- rm v1',
    'yarn',
    'yarn install',
    'yarn x',
    'yarnpkg x',
    'yarn exec rm v1',
    'pnpm x',
    'pnpm install',
    'pnpm dlx rm v1',
    'bun x rm v1',
    'bun run x',
    'bun install',
    "bun exec 'rm v1'",
    'corepack yarn x',
    'corepack yarn@4.1.0 x',
    'run-s x',
    'run-p fine x',
    'deno task x',
    "pwsh -c 'rm v1'",
  ])('deny %j', async (command) => {
    expect(await decisionOn(command)).toBe('deny');
  });

  test.each([
    'npm install left-pad',
    'npm pack ./other',
    'npm run fine --script-shell=./evil',
    'npm run fine --prefix sub',
    'npm edit x',
    'npm config edit',
    'yarn workspace a run y',
    'npm create vite',
    'julia -e 1',
    'ipython -c 1',
    'ipython3 -c 1',
    'git commit',
    'git commit -a',
    'git commit -- -m',
    'git commit --fixup=amend:HEAD',
    'git tag -a v1',
    'git tag -s v1',
    'git notes edit',
    'git notes add',
    'git rebase --continue',
    'git branch --edit-description',
    'run-s "fi*"',
  ])('ask about %j, of which nobody knows what it starts', async (command) => {
    expect(await decisionOn(command)).not.toBe('allow');
  });

  test.each([
    'jobs -l',
    'node a.js',
    'bun a.ts',
    'node --run fine',
    'npm run fine',
    'yarn fine',
    'run-s fine',
    'npm ls',
    'npm audit',
    'npm ci --ignore-scripts',
    'npm init -y',
    'git commit -m x',
    'git commit -qam x',
    'git commit --amend --no-edit',
    'git commit --fixup HEAD',
    'git commit -F a.txt',
    'git tag v1',
    'git tag -a v1 -m x',
    'git notes add -m x',
  ])('let %j run', async (command) => {
    expect(await decisionOn(command)).toBe('allow');
  });

  test.each(['jobs -x rm v1', 'node --run x', 'npm version patch --no-git-tag-version', 'npm pack'])(
    'keep the file from %j',
    async (command) => {
      await tools.execute('run_command', { command });
      expect(existsSync(join(root, 'v1'))).toBe(true);
    },
  );
});
