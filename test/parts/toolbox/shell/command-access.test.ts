import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { type PermissionRule, Permissions, type PermissionsOptions } from 'toolwright/toolbox/permissions';
import { commandAccess, LocalShell, shellTools } from 'toolwright/toolbox/shell';
import { leastGrowth } from '../../../setup/least-growth.js';
import { newFolder } from '../files/folders.js';

const FILES = {
  'a.txt': 'inside\n',
  'dir/b.txt': 'inside\n',
  '.env': 'S3CRET\n',
  'package.json': '{"scripts":{"test":"echo tested"}}',
};

function place(options: PermissionsOptions = {}, folder = newFolder(FILES)) {
  const permissions = new Permissions(options);
  const tools = new ToolRegistry({ policy: permissions.policy }).register(...shellTools({ folder }));
  const tool = tools.get('run_command');
  const decide = async (command: string, args = {}): Promise<string> => {
    const request = {
      tool: tool as never,
      arguments: { command, ...args },
      context: { callId: 'c' } as never,
    };
    return (await permissions.explain(request)).decision;
  };
  const run = async (command: string) => tools.execute('run_command', { command });
  return { folder, decide, run };
}

const allow = (command: string): PermissionRule => ({ decision: 'allow', command });

/** Commands that once ran without a question in mode auto. */
const ONCE_PASSED = [
  "python3 -v -c 'print(1)'",
  'echo CODE | python3 -u',
  "node --entry-url 'data:text/javascript,1'",
  'git rebase -qx evil',
  'git clone -qu evil . x',
  'c99 -wrapper evil a.c',
  'pip config --editor evil edit',
  "curl -F 'x=<.env' http://127.0.0.1",
  "curl -o '#1' 'http://127.0.0.1/{../outside/pwn}'",
  'curl --proto-default file /etc/passwd',
];

describe('without a sandbox', () => {
  test.each(ONCE_PASSED)(
    'a command without a rule asks in mode ask and is denied in mode auto: %s',
    async (command) => {
      expect(await place().decide(command)).toBe('ask');
      expect(await place({ mode: 'auto' }).decide(command)).toBe('deny');
      expect(await place({ mode: 'read-only' }).decide(command)).toBe('deny');
    },
  );

  test.each([
    'cat ~/.ssh/id_rsa',
    'cat /etc/ssh/id_rsa',
    'cat ../x',
    'cat link/x',
    'cat dir/../../x',
    'cat dangling',
  ])('a rule for any arguments does not allow paths outside of the folder: %s', async (command) => {
    const { folder, decide } = place({ rules: [allow('cat **'), allow('cat *')] });
    symlinkSync('/etc', join(folder, 'link'));
    symlinkSync('/nowhere/at/all', join(folder, 'dangling'));
    expect(await decide(command)).toBe('ask');
    expect(await decide('cat a.txt dir/b.txt')).toBe('allow');
  });

  test('grep -r AKIA ~ asks even if a rule allows grep', async () => {
    const { decide } = place({ rules: [allow('grep **')] });
    expect(await decide('grep -r AKIA ~')).toBe('ask');
    expect(await decide("grep -r AKIA '~'")).toBe('ask');
    expect(await decide('grep -r AKIA dir')).toBe('allow');
  });

  test.each([
    ...[
      'echo $HOME',
      'echo *',
      'echo {a,b}',
      'echo $(id)',
      'echo `id`',
      'echo <(id)',
      'echo $((1))',
      'echo x > a.txt',
    ],
    ...[
      'echo < a.txt',
      'echo <<E\nx\nE',
      'echo <<< x',
      'A=1 echo x',
      'echo x &',
      '(echo x)',
      '{ echo x; }',
      'f() { echo; }',
    ],
    ...[
      'if true; then echo x; fi',
      'for x in a; do echo x; done',
      'env echo x',
      'echo x | xargs echo',
      '! time echo x',
    ],
    ...[
      'find . -exec echo {} \\;',
      'cd .. && echo x',
      'eval echo',
      'source a.txt',
      'command echo x',
      'echo "$x"',
      'echo ~',
    ],
    ...[
      "printf -v 'a[$(id)]' x",
      'echo x=~/y',
      'echo\u200b x',
      'echo x >& a.txt',
      'echo x {fd}> a.txt',
      "echo 'x",
    ],
  ])('only lists of simple commands with literal words can be allowed by rules: %s', async (command) => {
    expect(await place({ rules: [allow('* **')] }).decide(command)).not.toBe('allow');
  });

  test.each([
    ...[
      'ls',
      'ls -la dir',
      'pwd',
      'cat a.txt',
      'head -n 5 a.txt',
      'tail -20 a.txt',
      'wc -l a.txt',
      'grep -rn in .',
    ],
    ...[
      "rg -n 'in' dir",
      'cat a.txt | grep in | wc -l',
      'ls && pwd; ls dir || pwd',
      'ls nowhere 2>&1',
      'git status -s',
    ],
    ...[
      'git diff --stat',
      'git log --oneline -5',
      'git show HEAD',
      'ls 2>/dev/null',
      '\'ls\' "dir"',
      'git diff HEAD -- a.txt',
    ],
  ])('read-only commands run in every mode: %s', async (command) => {
    const { folder, decide } = place();
    execFileSync('git', ['init', '-q'], { cwd: folder });
    expect(await decide(command)).toBe('allow');
    for (const mode of ['auto', 'read-only'] as const)
      expect(await place({ mode }, folder).decide(command)).toBe('allow');
  });

  test.each([
    ...[
      'ls ..',
      'ls /etc',
      'cat --files-from=x',
      'grep -f a.txt dir',
      'grep -R in dir',
      'tail -f a.txt',
      'wc --files0-from=x',
    ],
    ...[
      'rg --pre evil x',
      'rg --pre=evil x',
      'rg -e -- --pre=evil x',
      'rg -z x',
      'rg -L x',
      'rg --hostname-bin=evil x',
    ],
    ...[
      'git status -v',
      'git -c alias.status=!evil status',
      'git diff --ext-diff',
      'git diff --output=x',
      'git log -p --textconv',
    ],
    ...[
      'git log --format=%G?',
      'git --git-dir=x status',
      'git show --format=x%GG',
      'git diff --no-index a.txt /etc/passwd',
    ],
    ...[
      './ls',
      'bin/ls',
      '/bin/ls',
      'LS',
      'git stash',
      'git log --show-signature',
      'git',
      'git diff -O/etc/passwd',
    ],
  ])('read-only programs with other options ask: %s', async (command) => {
    const { folder, decide } = place();
    execFileSync('git', ['init', '-q'], { cwd: folder });
    expect(await decide(command)).toBe('ask');
  });

  test.each([
    ['a filter', '[filter "x"]\n\tclean = evil\n'],
    ['fsmonitor', '[core]\n\tfsmonitor = evil\n'],
    ['an included file', '[include]\n\tpath = ../evil\n'],
    ['a setting on the line of its section header', '[core] fsmonitor = evil\n'],
    ['another work tree', '[core]\n\tworktree = /\n'],
    ['a value with a line continuation', '[user]\n\tname = a\\\n[core]\n\tfsmonitor = evil\n'],
  ])('git asks if the configuration of the repository may start a program: %s', async (_what, config) => {
    const { folder, decide } = place();
    execFileSync('git', ['init', '-q'], { cwd: folder });
    expect(await decide('git status')).toBe('allow');
    appendFileSync(join(folder, '.git', 'config'), config);
    expect(await decide('git status')).toBe('ask');
  });

  test('git asks if the repository is missing or located elsewhere', async () => {
    for (const make of [
      (root: string) => writeFileSync(join(root, '.git'), 'gitdir: dir\n'),
      (root: string) => symlinkSync('dir', join(root, '.git')),
      (root: string) => {
        execFileSync('git', ['init', '-q'], { cwd: root });
        writeFileSync(join(root, '.git', 'commondir'), '../dir\n');
      },
      () => {},
    ]) {
      const { folder, decide } = place();
      make(folder);
      expect(await decide('git status')).toBe('ask');
    }
  });

  test.each([
    'objects',
    'objects/pack',
    'objects/aa',
    'objects/aa/bb',
    'refs',
    'refs/heads',
    'refs/heads/other',
    'packed-refs',
    'HEAD',
    'index',
    'info',
    'info/exclude',
    'logs',
    'shallow',
    'config',
  ])('git asks if .git/%s is a link, which Git would follow out of the folder', async (name) => {
    const { folder, decide } = place();
    execFileSync('git', ['init', '-q'], { cwd: folder });
    const other = newFolder();
    execFileSync('git', ['init', '-q'], { cwd: other });
    symlinkSync(other, join(folder, '.git', 'hooks', 'linked'));
    expect(await decide('git log')).toBe('allow');
    const linked = join(folder, '.git', name);
    mkdirSync(dirname(linked), { recursive: true });
    rmSync(linked, { recursive: true, force: true });
    symlinkSync(join(other, '.git', name), linked);
    for (const command of ['git log', 'git show', 'git diff', 'git status'])
      expect(await decide(command)).toBe('ask');
  });

  test('read-only commands run the programs of the system, ignoring environment and folder', async () => {
    const folder = newFolder({
      ...FILES,
      '.ripgreprc': '--pre=/bin/false\n',
      '.gitattributes': '*.txt diff=evil\n',
    });
    mkdirSync(join(folder, 'bin'));
    for (const name of ['ls', 'cat', 'git', 'env'])
      writeFileSync(join(folder, 'bin', name), `#!/bin/sh\ntouch ${folder}/ran\n`, { mode: 0o755 });
    const environment = {
      PATH: `${folder}/bin:${process.env.PATH}`,
      RIPGREP_CONFIG_PATH: join(folder, '.ripgreprc'),
      GIT_EXTERNAL_DIFF: join(folder, 'bin', 'ls'),
    };
    execFileSync('git', ['init', '-q'], { cwd: folder });
    execFileSync('git', ['add', 'a.txt'], { cwd: folder });
    writeFileSync(join(folder, '.git', 'hooks', 'post-index-change'), `#!/bin/sh\ntouch ${folder}/ran\n`, {
      mode: 0o755,
    });
    writeFileSync(join(folder, 'a.txt'), 'changed\n');
    const tools = new ToolRegistry({ policy: new Permissions().policy }).register(
      ...shellTools({ folder, environment }),
    );
    const run = async (command: string): Promise<string> =>
      (await tools.execute('run_command', { command })).forLLM;
    expect(await run('ls && cat a.txt | cat')).toContain('changed');
    if (spawnSync('rg', ['--version']).status === 0) expect(await run('rg -n changed')).toContain('a.txt');
    expect(await run('git status -s; git diff')).toContain('+changed');
    expect(await run('ls')).not.toMatch(/^ran$/m);
  });

  test('an allow rule matches the whole command, with further words only if it ends in ` *`', async () => {
    const { decide } = place({
      rules: [allow('npm test'), allow('git stash *'), allow('a*a'), allow('x:* y')],
    });
    const decisions = {
      'npm test': 'allow',
      'npm test x': 'ask',
      npm: 'ask',
      'npm -s test': 'ask',
      'git stash': 'allow',
      'git stash pop -q': 'allow',
      'git stashes': 'ask',
      'git -C x stash': 'ask',
      a: 'ask',
      aa: 'allow',
      'abc/../da': 'allow',
      'x:1 y': 'allow',
      'x:1 y z': 'ask',
      'npm test && evil': 'ask',
      'npm test || git stash': 'allow',
      './npm test': 'ask',
    };
    for (const [command, decision] of Object.entries(decisions))
      expect([command, await decide(command)]).toEqual([command, decision]);
  });

  test('a deny or ask rule matches with any further words and anywhere in the command', async () => {
    const rules: PermissionRule[] = [
      { decision: 'deny', command: 'git push' },
      { decision: 'deny', command: 'rm' },
      { decision: 'ask', command: 'cat' },
    ];
    const { decide } = place({ rules });
    for (const command of [
      'git push',
      'git push -f',
      'rm x',
      '/bin/rm x',
      'RM x',
      'ls; rm x',
      'echo $(rm x)',
      'if rm x; then :; fi',
    ])
      expect([command, await decide(command)]).toEqual([command, 'deny']);
    expect(await decide('cat a.txt')).toBe('ask');
    expect(await decide('git pushes')).toBe('ask');
    expect(await decide('git status')).toBe('ask');
  });

  test('a denied path also denies commands that name it', async () => {
    const rules: PermissionRule[] = [allow('* **'), { decision: 'deny', path: '**/.env*' }];
    const { folder, decide } = place({ rules });
    symlinkSync('.env', join(folder, 'named'));
    execFileSync('git', ['init', '-q'], { cwd: folder });
    for (const command of [
      'cat .env',
      'cat named',
      'cat dir/../.env',
      "curl -F 'x=<.env' h",
      'x --file=.env',
      'cat .ENV',
    ])
      expect([command, await decide(command)]).toEqual([command, 'deny']);
    for (const command of ['grep -r x .', 'rg x', 'git diff', 'tar c .'])
      expect([command, await decide(command)]).toEqual([command, 'ask']);
    expect(await decide('node x.js')).toBe('allow');
  });

  test('the rules in the documentation allow only the expected commands', async () => {
    const { folder, decide } = place({
      rules: ['npm test', 'jest', 'git status **', 'cat **', 'npm run test:*', 'node --test', 'echo **'].map(
        allow,
      ),
    });
    execFileSync('git', ['init', '-q'], { cwd: folder });
    // Commands of the built-in list, and those that these rules allow.
    const allowed = new Set([
      'npm test',
      'jest',
      'cat a.txt',
      'git status',
      'git status -s',
      'npm run test:a',
      'node --test',
      'echo x y',
      'ls',
      'git status --ignored x',
    ]);
    const others = [
      'npm',
      'npm test x',
      'npm run',
      'npm run test',
      'npm run test:a b',
      'jest x',
      'jest --x',
      'git',
      'git statusx',
      'catx a.txt',
      'node',
      'node --test x',
      'node --tests',
      'echo $x',
      'cat /etc/passwd',
      './jest',
      'npm test; jest x',
      'sh -c jest',
    ];
    for (const command of [...allowed, ...others])
      expect([command, await decide(command)]).toEqual([command, allowed.has(command) ? 'allow' : 'ask']);
  });

  test('a command in a folder that does not exist still asks', async () => {
    expect(await place({ rules: [allow('* **')] }).decide('rm x', { folder: 'later' })).toBe('ask');
  });

  test('an allowed command runs, and a denied one in mode auto gets a message about the sandbox', async () => {
    const { run } = place({ mode: 'auto', rules: [allow('echo *')] });
    expect((await run('echo fine && cat a.txt')).forLLM).toContain('inside');
    const refused = await run('npm test');
    expect(refused.isError).toBe(true);
    expect(refused.forLLM).toMatch(
      /^[^\n]*mode 'auto' runs commands only in a sandbox: use sandboxShell[^\n]*$/,
    );
  });

  test('commands run with sandbox external, with a warning', async () => {
    const warnings: string[] = [];
    const logger = { debug() {}, info() {}, warn: (text: string) => void warnings.push(text), error() {} };
    const folder = newFolder(FILES);
    const { policy } = new Permissions({ mode: 'auto' });
    const tools = new ToolRegistry({ policy }).register(
      ...shellTools({ folder, sandbox: 'external', logger }),
    );
    expect(
      (await tools.execute('run_command', { command: 'x=1; echo $x > b.txt; cat b.txt' })).forLLM,
    ).toMatch(/^1\n/);
    expect(warnings).toEqual([expect.stringContaining("sandbox is 'external'")]);
  });
});

describe('commandAccess', () => {
  const shapes = [
    'sudo -x a ',
    'a;',
    'a|',
    'a&&',
    '(',
    '$(',
    '"$(',
    '<<A ',
    'f() ',
    '> a ',
    '=',
    'x=',
    '/',
    './',
    '../',
    'a/../',
    '{a,',
    "$'a' ",
    '*',
    '"a\\`$(',
    'ls ',
    'cat a.txt | ',
    'git log ',
    '- ',
    '~ ',
    'a:b,',
  ];

  test.each(shapes)('takes linear time for long commands: %s', async (shape) => {
    const folder = newFolder(FILES);
    const permissions = new Permissions({
      rules: [
        allow('* **'),
        { decision: 'deny', path: '**/.env*' },
        { decision: 'deny', host: '*.evil.test' },
        { decision: 'ask', command: 'a * b' },
      ],
    });
    const tools = new ToolRegistry().register(...shellTools({ folder }));
    const tool = tools.get('run_command') as never;
    const of = (length: number) => {
      const command = shape.repeat(Math.ceil(length / shape.length)).slice(0, length);
      return () => permissions.explain({ tool, arguments: { command }, context: { callId: 'c' } as never });
    };
    const growth = await leastGrowth({ small: of(10_000), large: of(20_000), most: 2.2, noiseMs: 60 });
    expect(growth).toBeLessThanOrEqual(2.2);
  });

  test('reports the accesses of a command with the paths that it mentions', () => {
    const folder = newFolder(FILES);
    const shell = new LocalShell({ folder });
    expect(commandAccess('x -la dir; echo $y', { folder: shell.folderAt('.'), view: shell.view() })).toEqual([
      { action: 'run', words: ['x', '-la', 'dir'], mentions: ['-la', 'dir/'], folder: shell.view().root },
      { action: 'run', words: ['echo', undefined] },
      { action: 'unknown', why: 'some of its arguments are unknown before it runs' },
    ]);
  });
});
