import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { type PermissionRule, Permissions, type PermissionsOptions } from 'toolwright/toolbox/permissions';
import { shellTools } from 'toolwright/toolbox/shell';
import { newFolder } from '../files/folders.js';

let tools: ToolRegistry;

beforeEach(() => {
  const root = newFolder({
    '.env': 'SECRET=1',
    'secret.txt': 'SECRET=2',
    'sub/.env': 'SECRET=3',
    'sub/plain': '-',
    'clean/a.ts': 'a',
    'app/[id]/b.ts': 'b',
    'x.py': '#!/usr/bin/env python3\n',
  });
  symlinkSync('x.py', join(root, 'same.py'));
  tools = new ToolRegistry().register(...shellTools({ folder: root }));
});

async function judged(options: PermissionsOptions, command: string): Promise<string> {
  const tool = tools.offered('run_command');
  if (tool === undefined) throw new Error('there is no shell');
  const request = { tool, arguments: { command }, context: { conversationId: 'c' } as never };
  return (await new Permissions(options).explain(request)).decision;
}

const GIVEN = [
  'cat .e*',
  'cat .?nv',
  'cat .e[n]v',
  'cat .[a-z]nv',
  'cat .[!a]nv',
  'cat .*',
  'cat ./.e*',
  'cd sub; cat ../.e*',
  'cp .e* copy',
  'timeout 5 cat .e*',
  'bash -c "cat .e*"',
  'grep -r SECRET .',
  'grep -r SECRET',
  'grep -rA 3 SECRET',
  'grep --recursive -e SECRET',
  'rg SECRET',
  'rg -A 3 sub',
  'find -name x',
  'git grep SECRET',
  'git add "*nv"',
  'git diff',
  'tar c .',
  'tar xf old.tar',
  'tar c -T list',
  'curl -sK list',
  'wc --files0-from=list',
  'patch -p1 < a.patch',
  'git log -U3',
  'git reflog -p',
  'git cat-file --batch-all-objects --batch',
  'git checkout other',
  'git switch other',
  'git merge other',
  'git rebase other',
  'git revert HEAD',
  'git am mail.patch',
  'cat sub/../.env',
];

describe('Permissions', () => {
  test.each(GIVEN)('with a rule that denies or asks about .env do not let %j run', async (command) => {
    for (const path of ['**/.env*', '.env'])
      for (const decision of ['deny', 'ask'] as const) {
        const rule: PermissionRule = { decision, path };
        const verdicts = [
          await judged({ mode: 'auto', rules: [rule] }, command),
          await judged({ mode: 'auto', folderRules: [rule] }, command),
        ];
        for (const verdict of verdicts) expect([path, decision, verdict]).not.toContain('allow');
      }
  });

  test.each([
    ['.env', 'cat .e*', 'deny'],
    ['.env', 'cat .x*', 'allow'],
    ['sub/.env', 'cat sub/.e*', 'deny'],
    ['sub/.env', 'cat s*/.env', 'deny'],
    ['sub/.env', 'cat s*/.e?v', 'deny'],
    ['sub/.env', 'grep -r SECRET *', 'ask'],
    ['sub/.env', 'grep -r SECRET clean', 'allow'],
    ['sub/.env', 'grep -rn SECRET clean', 'allow'],
    ['secret.txt', 'cat sec*', 'deny'],
    ['secret.txt', 'cat *', 'deny'],
    ['secret.txt', 'rm s?cret.txt', 'deny'],
    ['secret.txt', 'cat *.md', 'allow'],
    ['later.txt', 'unzip a; cat lat*', 'ask'],
    ['**/.env*', 'cat clean/*', 'allow'],
    ['**/.env*', 'cat *.txt', 'allow'],
    ['**/.env*', 'npm --version', 'allow'],
    ['**/.env*', 'ls', 'allow'],
    ['sub/.env', 'tar cf clean.tar clean', 'allow'],
    ['**/.env*', 'git checkout -b new', 'allow'],
    ['**/.env*', 'git log --oneline', 'allow'],
    ['**/.env*', 'git commit -m "why?"', 'allow'],
    ['**/.env*', 'git commit -m x ".e*"', 'ask'],
    ['app/[[]id]/*', 'cat app/"[id]"/*', 'deny'],
  ] as const)(
    'judge by a rule that denies %j what %j means in the folder: %s',
    async (path, command, decision) => {
      expect(await judged({ mode: 'auto', rules: [{ decision: 'deny', path }] }, command)).toBe(decision);
    },
  );

  test('do not let a command be allowed whose words may be what another rule denies', async () => {
    const rules: PermissionRule[] = [
      { decision: 'allow', command: 'cat **' },
      { decision: 'deny', path: '.env' },
    ];
    for (const command of ['cat .e*', 'cat .en?', 'cat .', 'cat "$x"', 'ls | xargs cat', 'cat */../.env'])
      expect([command, await judged({ mode: 'ask', rules }, command)]).not.toContain('allow');
    expect(await judged({ mode: 'ask', rules }, 'cat sub/plain')).toBe('allow');
  });

  test.each([
    './x.py',
    './x.py a',
    '././x.py',
    'sub/../x.py',
    '"$PWD"/x.py',
    './same.py',
    'cd sub; ../x.py',
    'timeout 5 ./x.py',
  ])('with a rule that denies the program ./x.py do not let %j run', async (command) => {
    for (const denied of ['./x.py', 'x.py', './X.py'])
      expect([
        denied,
        await judged({ mode: 'auto', rules: [{ decision: 'deny', command: denied }] }, command),
      ]).not.toContain('allow');
  });

  test('let a program of the folder run that a rule allows as it is written, and no other way', async () => {
    const options: PermissionsOptions = { mode: 'ask', rules: [{ decision: 'allow', command: './x.py **' }] };
    expect(await judged(options, './x.py a')).toBe('allow');
    for (const command of ['x.py a', './same.py a', 'sub/../x.py a'])
      expect([command, await judged(options, command)]).toEqual([command, 'ask']);
  });
});
