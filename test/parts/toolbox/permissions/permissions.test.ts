import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, type ResourceAccess, resumeToolLoop, runToolLoop, ToolRegistry } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import {
  DiskFileSystem,
  type FileSystem,
  fileTools,
  JournaledFileSystem,
  MemoryFileSystem,
} from 'toolwright/toolbox/files';
import {
  type Permission,
  type PermissionRule,
  Permissions,
  type PermissionsOptions,
  rulesOfYes,
} from 'toolwright/toolbox/permissions';
import { shellTools } from 'toolwright/toolbox/shell';
import { webTools } from 'toolwright/toolbox/web';
import { newFolder } from '../files/folders.js';

/** Returns the verdict on a call that accesses these resources. */
async function verdictOf(options: PermissionsOptions, touches: readonly ResourceAccess[], scope = {}) {
  return verdictBy(new Permissions(options), touches, scope);
}

async function verdictBy(permissions: Permissions, touches: readonly ResourceAccess[], scope = {}) {
  const asked = Promise.withResolvers<Awaited<ReturnType<Permissions['explain']>>>();
  const tool = defineTool({
    name: 'do_it',
    description: 'Do it',
    touches: () => touches,
    execute: () => 'done',
  });
  const policy = async (request: Parameters<Permissions['explain']>[0]): Promise<boolean> => {
    asked.resolve(await permissions.explain(request));
    return false;
  };
  await new ToolRegistry({ policy }).register(tool).executeWithContext('do_it', {}, scope);
  return asked.promise;
}

const read = (path: string): ResourceAccess => ({ action: 'read', path });
const write = (path: string): ResourceAccess => ({ action: 'write', path });
const run = (command: string, ...mentions: readonly string[]): ResourceAccess => ({
  action: 'run',
  words: command.split(' ').map((word) => (word === '?' ? undefined : word)),
  mentions,
});
const sandboxed = (touch: ResourceAccess): ResourceAccess =>
  ({ ...touch, isSandboxed: true }) as ResourceAccess;
const open = (url: string): ResourceAccess => ({ action: 'open', url });
const unknown: ResourceAccess = { action: 'unknown', why: 'it is odd' };

describe('Permissions', () => {
  test.each<[PermissionsOptions['mode'], ResourceAccess, Permission]>([
    ['read-only', read('a'), 'allow'],
    ['read-only', write('a'), 'deny'],
    ['read-only', run('ls'), 'deny'],
    ['read-only', unknown, 'ask'],
    ['ask', read('a'), 'allow'],
    ['ask', write('a'), 'ask'],
    ['ask', run('ls'), 'ask'],
    ['ask', unknown, 'ask'],
    ['auto', read('a'), 'allow'],
    ['auto', write('a'), 'allow'],
    ['auto', run('ls'), 'deny'],
    ['auto', run('ls ?'), 'deny'],
    ['auto', sandboxed(run('ls')), 'allow'],
    ['auto', sandboxed(run('ls ?', '/etc/passwd', '.git/config')), 'allow'],
    ['auto', sandboxed(unknown), 'allow'],
    ['ask', sandboxed(run('ls')), 'ask'],
    ['ask', sandboxed(unknown), 'ask'],
    ['read-only', sandboxed(run('ls')), 'deny'],
    ['read-only', sandboxed(unknown), 'ask'],
    ['read-only', { ...run('cat a', 'a'), isReadOnly: true } as ResourceAccess, 'allow'],
    ['read-only', { action: 'open', url: 'https://example.com' }, 'deny'],
    ['auto', write('.git'), 'ask'],
    ['auto', write('sub/.git'), 'ask'],
    ['auto', write('.yarnrc.yml'), 'ask'],
    ['auto', write('.npmrc'), 'ask'],
    ['auto', write('.pnpmfile.cjs'), 'ask'],
    ['auto', write('.yarnrc'), 'ask'],
    ['auto', unknown, 'ask'],
    ['auto', read('/etc/passwd'), 'ask'],
    ['auto', write('/etc/passwd'), 'ask'],
    ['read-only', write('/etc/passwd'), 'deny'],
    ['ask', run('cat x', '/etc/passwd'), 'ask'],
    ['auto', write('.git/config'), 'ask'],
    ['auto', write('a/.git/hooks/x'), 'ask'],
    ['auto', read('.git/config'), 'allow'],
    ['auto', { action: 'open', url: 'https://example.com' }, 'allow'],
    ['ask', { action: 'open', url: 'https://example.com' }, 'ask'],
  ])('in mode %s the decision on %j is %s', async (mode, touch, decision) => {
    expect((await verdictOf({ mode }, [touch])).decision).toBe(decision);
  });

  const rule = (decision: Permission, about: Omit<PermissionRule, 'decision'>): PermissionRule => ({
    decision,
    ...about,
  });

  test.each<[string, readonly PermissionRule[], ResourceAccess, Permission]>([
    ['a path that matches an allow rule', [rule('allow', { path: 'src/**' })], write('src/a'), 'allow'],
    ['a path that matches no rule', [rule('allow', { path: 'src/**' })], write('lib/a'), 'ask'],
    ['an allowed action', [rule('allow', { action: 'write' })], write('x'), 'allow'],
    [
      'the more specific rule wins',
      [rule('allow', { path: '**' }), rule('ask', { path: 'src/**' })],
      write('src/a'),
      'ask',
    ],
    [
      'the more specific rule wins in any order',
      [rule('ask', { path: 'src/**' }), rule('allow', { path: '**' })],
      write('src/a'),
      'ask',
    ],
    [
      'a path is more specific than a tool',
      [rule('ask', { tool: 'do_it' }), rule('allow', { path: 'a' })],
      write('a'),
      'allow',
    ],
    [
      'ask wins over an equally specific allow',
      [rule('allow', { path: 'ab/*' }), rule('ask', { path: '*/ab' })],
      write('ab/ab'),
      'ask',
    ],
    [
      'ask wins over an equally specific allow in the other order',
      [rule('ask', { path: '*/ab' }), rule('allow', { path: 'ab/*' })],
      write('ab/ab'),
      'ask',
    ],
    [
      'deny wins over every other rule',
      [rule('allow', { path: 'src/deep/a' }), rule('deny', { action: 'write' })],
      write('src/deep/a'),
      'deny',
    ],
    ['a deny rule ignores case', [rule('deny', { path: 'secrets/**' })], read('SECRETS/a'), 'deny'],
    ['a deny rule ignores the Unicode form', [rule('deny', { path: 'é/**' })], read('e\u0301/a'), 'deny'],
    ['an allow rule is case-sensitive', [rule('allow', { path: 'src/**' })], write('SRC/a'), 'ask'],
    [
      'a deny rule also applies outside of the folder',
      [rule('deny', { path: '**/.env' })],
      read('/srv/x/.env'),
      'deny',
    ],
    [
      'an allow rule for any path applies only inside the folder',
      [rule('allow', { path: '**' })],
      write('/etc/x'),
      'ask',
    ],
    [
      'an absolute allow rule applies outside of the folder',
      [rule('allow', { path: '/opt/x/**' })],
      write('/opt/x/y'),
      'allow',
    ],
    [
      'a deep access to a folder that contains a denied path',
      [rule('deny', { path: 'a/secret' })],
      { ...read('a'), isDeep: true } as ResourceAccess,
      'ask',
    ],
    [
      'a deep access to another folder',
      [rule('deny', { path: 'a/secret' })],
      { ...read('b'), isDeep: true } as ResourceAccess,
      'allow',
    ],
    [
      'a command that matches a rule exactly',
      [rule('allow', { command: 'git status' })],
      run('git status'),
      'allow',
    ],
    [
      'a command with a further argument',
      [rule('allow', { command: 'git status' })],
      run('git status -s'),
      'ask',
    ],
    [
      'a command with further arguments for ` *`',
      [rule('allow', { command: 'git status *' })],
      run('git status -s x'),
      'allow',
    ],
    [
      'a command with further arguments for the older ` **`',
      [rule('allow', { command: 'git status **' })],
      run('git status -s x'),
      'allow',
    ],
    [
      'a command with an unknown word',
      [rule('allow', { command: 'git status *' })],
      run('git status -s ?'),
      'ask',
    ],
    [
      'a command that names a path outside of the folder',
      [rule('allow', { command: 'cat *' })],
      run('cat /etc/x', '/etc/x'),
      'ask',
    ],
    [
      'a star that matches nothing between two characters',
      [rule('allow', { command: 'a*a' })],
      run('aa'),
      'allow',
    ],
    ['a star whose two sides would overlap', [rule('allow', { command: 'a*a' })], run('a'), 'ask'],
    [
      'a command that only starts with the same characters',
      [rule('allow', { command: 'git **' })],
      run('gitx y'),
      'ask',
    ],
    ['a star inside a word', [rule('allow', { command: 'npm run test:*' })], run('npm run test:a'), 'allow'],
    ['a program of the same name in the folder', [rule('allow', { command: 'ls' })], run('./ls'), 'ask'],
    ['a deny rule with further arguments', [rule('deny', { command: 'rm' })], run('rm -rf x'), 'deny'],
    [
      'a deny rule for a program called by its path',
      [rule('deny', { command: 'rm' })],
      run('/bin/rm x'),
      'deny',
    ],
    ['a deny rule for a command in upper case', [rule('deny', { command: 'rm' })], run('RM x'), 'deny'],
    ['an unknown word that may be denied', [rule('deny', { command: 'git push' })], run('git ?'), 'ask'],
    [
      'a denied path as an argument',
      [rule('deny', { path: 'secrets/**' })],
      run('cat x', 'secrets/x'),
      'deny',
    ],
    [
      'a host',
      [rule('allow', { host: '*.example.com' })],
      { action: 'open', url: 'https://A.example.com/x' },
      'allow',
    ],
    [
      'another host',
      [rule('allow', { host: '*.example.com' })],
      { action: 'open', url: 'https://example.com.evil/' },
      'ask',
    ],
    ['a host with a port', [rule('allow', { host: 'a.test:8080' })], open('http://a.test:8080/'), 'allow'],
    ['a host with another port', [rule('allow', { host: 'a.test:8080' })], open('http://a.test/'), 'ask'],
    [
      'an allowed host that is only the user of a URL',
      [rule('allow', { host: 'a.test' })],
      open('http://a.test@b/'),
      'ask',
    ],
    ...['http://evil.test.:4821/', 'http://EVIL.test/', 'http://a.test@evil.test/', 'http://evil%2etest'].map(
      (url): [string, PermissionRule[], ResourceAccess, Permission] => [
        `a denied host as ${url}`,
        [rule('deny', { host: 'evil.test' }), rule('allow', { tool: '*' })],
        open(url),
        'deny',
      ],
    ),
    ...[
      ['evil.test', 'git://EVIL.test./x', 'deny'],
      ['evil.test', 'ssh://git@evil%2Etest/x', 'deny'],
      ['evil.test', 'evil.test/x', 'deny'],
      ['evil.test', 'evil.test:80/x', 'deny'],
      ['evil.test.', 'http://evil.test/', 'deny'],
      ['Evil.Test:4821', 'http://evil.test:4821/', 'deny'],
      ['evil.test:80', 'http://evil.test/', 'deny'],
      ['bücher.test', 'http://xn--bcher-kva.test/', 'deny'],
      ['*.bücher.test', 'http://a.BÜCHER.test./', 'deny'],
      ['xn--bcher-kva.test', 'http://bücher.test/', 'deny'],
      ['evil.test', 'http://evil。test/', 'deny'],
      ['127.0.0.1', 'http://2130706433/', 'deny'],
      ['127.0.0.1', 'http://[::ffff:127.0.0.1]/', 'deny'],
      ['0x7f.1', 'http://127.0.0.1/', 'deny'],
      ['::1', 'http://[0:0::1]:80/', 'deny'],
      ['evil.test', 'http://{evil,a}.test/', 'ask'],
      ['evil.test', 'http://[evil].test/', 'ask'],
      ['evil.test', 'file:///evil.test', 'allow'],
      ['evil.test', 'http://notevil.test/', 'allow'],
      ['evil.test', 'http://a.evil.test/', 'allow'],
    ].map(([host, url, decision]): [string, PermissionRule[], ResourceAccess, Permission] => [
      `a deny rule for ${host} with ${url}`,
      [rule('deny', { host }), rule('allow', { tool: '*' })],
      open(String(url)),
      decision as Permission,
    ]),
    ...[
      'npm -s publish',
      'npm --quiet publish --tag x',
      'npm -d --loglevel silent publish',
      'npm --loglevel=silent publish',
      'npm -- publish',
      'NPM -s PUBLISH',
    ].map((command): [string, PermissionRule[], ResourceAccess, Permission] => [
      `a denied command with options before it: ${command}`,
      [rule('deny', { command: 'npm publish' }), rule('allow', { tool: '*' })],
      run(command),
      'deny',
    ]),
    ...[
      ['git push --force', 'git -C x -c a.b=c push -u origin --force', 'deny'],
      ['cargo publish', 'cargo +nightly publish', 'deny'],
      ['docker system prune', 'docker -H x system --debug prune', 'deny'],
      ['npm publish', 'npm -s ?', 'ask'],
      ['npm publish', 'npm run publish', 'allow'],
      ['git push', 'git commit -m push', 'allow'],
    ].map(([command, given, decision]): [string, PermissionRule[], ResourceAccess, Permission] => [
      `a deny rule for ${command} with ${given}`,
      [rule('deny', { command }), rule('allow', { command: '* **' })],
      run(String(given)),
      decision as Permission,
    ]),
    [
      'an allow rule does not match options before the command',
      [rule('allow', { command: 'npm publish' })],
      run('npm -s publish'),
      'ask',
    ],
    [
      'an unknown access is not allowed by a rule for the tool',
      [rule('allow', { tool: 'do_it' })],
      unknown,
      'ask',
    ],
    [
      'files in .git with a rule that names .git',
      [rule('allow', { action: 'write', path: '**/.git/**' })],
      write('.git/x'),
      'allow',
    ],
  ])('decides by rules: %s', async (_what, rules, touch, decision) => {
    expect((await verdictOf({ mode: 'ask', rules }, [touch])).decision).toBe(decision);
  });

  test('allows a call only if everything that it accesses is allowed', async () => {
    const rules = [rule('allow', { path: 'a' }), rule('deny', { path: 'c' })];
    expect((await verdictOf({ rules }, [write('a'), write('b')])).decision).toBe('ask');
    expect((await verdictOf({ rules }, [write('a'), write('c'), unknown])).decision).toBe('deny');
    expect((await verdictOf({ rules }, [])).decision).toBe('allow');
  });

  test('matches tools without touches by name, arguments and annotations', async () => {
    const made: string[] = [];
    const tool = (name: string, annotations = {}) =>
      defineTool({
        name,
        description: name,
        annotations,
        parameters: { type: 'object', properties: { to: { type: 'string' }, amount: { type: 'number' } } },
        execute: () => made.push(name),
      });
    const call = async (options: PermissionsOptions, name: string, args = {}): Promise<boolean> => {
      const tools = new ToolRegistry({ policy: new Permissions(options).policy }).register(
        tool('look', { readOnly: true }),
        tool('pay'),
        tool('wipe', { destructive: true }),
      );
      return !(await tools.execute(name, args)).isError;
    };
    expect(await call({}, 'look')).toBe(true);
    expect(await call({}, 'pay')).toBe(false);
    expect(await call({ mode: 'auto' }, 'pay')).toBe(true);
    expect(await call({ mode: 'auto' }, 'wipe')).toBe(false);
    expect(await call({ mode: 'read-only' }, 'pay')).toBe(false);
    const rules = [rule('allow', { tool: 'p*', arguments: { to: 'shop *', amount: 5 } })];
    expect(await call({ rules }, 'pay', { to: 'shop 1', amount: 5 })).toBe(true);
    expect(await call({ rules }, 'pay', { to: 'shop 1', amount: 6 })).toBe(false);
    expect(await call({ rules }, 'pay', { to: 'my shop 1', amount: 5 })).toBe(false);
    expect(await call({ rules }, 'pay', { amount: 5 })).toBe(false);
    expect(await call({ rules: [rule('deny', { tool: 'look' })] }, 'look')).toBe(false);
  });

  test('refuses a call if touches throws or returns an invalid value', async () => {
    for (const touches of [
      () => {
        throw new Error('no');
      },
      () => 'odd',
      () => [{ action: 'fly' }],
      () => [{ action: 'read' }],
    ]) {
      const tool = defineTool({
        name: 'x',
        description: 'x',
        touches: touches as never,
        execute: () => 'done',
      });
      const policy = new Permissions({ mode: 'auto' }).policy;
      const { isError } = await new ToolRegistry({ policy }).register(tool).execute('x', {});
      expect(isError).toBe(true);
    }
  });

  const inProject = (path: string): ResourceAccess => ({ action: 'write', path, folder: '/srv/project' });
  test.each<[PermissionsOptions, ResourceAccess, Permission]>([
    [{ rules: [rule('allow', { path: 'reports/**' })] }, write('reports/./a//b'), 'allow'],
    [{ rules: [rule('allow', { path: 'reports/**' })] }, write('reports/../src/a'), 'ask'],
    [{ rules: [rule('allow', { path: 'reports/**' })] }, write('reports/../.git/hooks/x'), 'ask'],
    [{ rules: [rule('allow', { path: 'reports/**' })] }, write('reports/../../../etc/passwd'), 'ask'],
    [{ rules: [rule('allow', { path: 'reports/**' })] }, read('reports/../../../etc/passwd'), 'ask'],
    [{ rules: [rule('allow', { path: '**' })] }, write('reports/../../a'), 'ask'],
    [{ rules: [rule('allow', { path: '**' })] }, write('..'), 'ask'],
    [{ rules: [rule('allow', { path: '/**' })] }, write('../a'), 'ask'],
    [{ rules: [rule('allow', { action: 'write' })] }, write('../a'), 'ask'],
    [{ rules: [rule('allow', { path: 'src/**' })] }, inProject('/srv/project/src/a'), 'allow'],
    [{ rules: [rule('allow', { path: 'src/**' })] }, inProject('../project/src/a'), 'allow'],
    [{ rules: [rule('allow', { path: 'src/**' })] }, inProject('/srv/project/src/../a'), 'ask'],
    [{ rules: [rule('allow', { path: '**' })] }, inProject('/srv/project-2/a'), 'ask'],
    [{ rules: [rule('allow', { path: '/srv/other/**' })] }, inProject('../other/a'), 'allow'],
    [{ mode: 'auto' }, write('reports/../../a'), 'ask'],
    [{ mode: 'auto' }, write('reports/../.git/hooks/x'), 'ask'],
    [{ mode: 'auto' }, write('.git/'), 'ask'],
    [{ mode: 'auto' }, read('..'), 'ask'],
    [{ mode: 'auto' }, write('..a'), 'allow'],
    [{ mode: 'auto' }, write('a/..'), 'allow'],
    [{ mode: 'auto' }, inProject('/srv/project/a'), 'allow'],
    [{ mode: 'auto' }, inProject('../a'), 'ask'],
    [{ mode: 'read-only' }, write('../a'), 'deny'],
    [{ mode: 'auto', rules: [rule('deny', { path: 'secret/**' })] }, read('src/../secret/a'), 'deny'],
    [{ mode: 'auto', rules: [rule('deny', { path: '**/.env*' })] }, read('../.env'), 'deny'],
    [{ mode: 'auto', rules: [rule('deny', { path: '/etc/**' })] }, inProject('../../etc/passwd'), 'deny'],
    [{ mode: 'auto', rules: [rule('deny', { path: '/etc/**' })] }, read('/srv/../etc/passwd'), 'deny'],
    [{ rules: [rule('deny', { path: 'secret/**' })] }, run('cat x', 'src/../secret/a'), 'deny'],
    [{ rules: [rule('allow', { command: 'cat *' })] }, run('cat x', 'a/../../x'), 'ask'],
  ])(
    'with %j the decision on the path of %j is %s after it is normalized',
    async (options, touch, decision) => {
      expect((await verdictOf(options, [touch])).decision).toBe(decision);
    },
  );

  test('an approval of a path that leaves the folder is remembered for the same call', () => {
    const sameCall = { tool: 'do_it', arguments: { name: '../a' } };
    expect(rulesOfYes('do_it', { name: '../a' }, [write('../a')])).toEqual([sameCall]);
  });

  const packageTools = new Map(
    [...fileTools(new MemoryFileSystem()), ...shellTools({ folder: process.cwd() }), ...webTools()].map(
      (tool) => [tool.name, tool],
    ),
  );
  test.each([
    'read_file',
    'write_file',
    'edit_file',
    'patch_files',
    'move_file',
    'delete_file',
    'run_command',
    'web_fetch',
  ])('the access of a call of %s under other names of arguments is unknown, and asks', async (name) => {
    const permissions = new Permissions({ mode: 'auto' });
    const tool = packageTools.get(name);
    const verdict = await permissions.explain({ tool, arguments: { t: 'a' }, context: {} } as never);
    expect(verdict).toMatchObject({ decision: 'ask', reasons: [{ touch: { action: 'unknown' } }] });
  });

  test('suspends a run with the reason, and refuses a denied call', async () => {
    const files = new MemoryFileSystem({ 'a.txt': 'a' });
    const permissions = new Permissions({
      rules: [rule('deny', { path: 'secret/**', reason: 'secrets stay' })],
    });
    const provider = new ScriptedProvider([
      {
        toolCalls: [
          { name: 'write_file', arguments: { path: 'b.txt', text: 'b' } },
          { name: 'write_file', arguments: { path: 'secret/x', text: '' } },
        ],
      },
    ]);
    const run = await runToolLoop(
      { provider, model: 'm', tools: fileTools(files), policy: permissions.policy },
      [{ role: 'user', content: 'Go' }],
    );
    expect(run.pending).toMatchObject([
      { kind: 'approval', message: "changes 'b.txt': mode 'ask' asks about it" },
    ]);
    expect(JSON.stringify(run.state)).toContain('secrets stay');
    expect(files.texts()).toEqual({ 'a.txt': 'a' });
  });

  test('explain() throws for a name instead of a tool definition', async () => {
    const request = { tool: 'order', arguments: {}, context: { callId: 'c' } };
    await expect(new Permissions().explain(request as never)).rejects.toMatchObject({ code: 521 });
  });

  test('a rule for a path never makes the mode read-only less strict', async () => {
    const rules: PermissionRule[] = [{ decision: 'deny', path: '.env' }];
    const touches = [run('cat ?')];
    expect((await verdictOf({ mode: 'read-only' }, touches)).decision).toBe('deny');
    expect((await verdictOf({ mode: 'read-only', rules }, touches)).decision).toBe('deny');
    const asking: PermissionRule[] = [{ decision: 'ask', path: '.env' }];
    expect((await verdictOf({ mode: 'read-only', rules: asking }, touches)).decision).toBe('deny');
    const allowing: PermissionRule[] = [...rules, { decision: 'allow', command: 'cat **' }];
    expect((await verdictOf({ mode: 'read-only', rules: allowing }, touches)).decision).toBe('deny');
  });

  test('asks if a command might access a denied path, despite a remembered approval', async () => {
    const permissions = new Permissions({ rules: [{ decision: 'deny', path: '.env' }] });
    permissions.remember({ command: 'grep **' }, { session: 's' });
    const scope = { conversationId: 's' };
    const verdicts = [run('grep -r x .', './'), run('grep x a', 'a')].map((touch) =>
      verdictBy(permissions, [touch], scope),
    );
    expect((await Promise.all(verdicts)).map(({ decision }) => decision)).toEqual(['ask', 'allow']);
  });

  test('allows everything only with an explicit rule', async () => {
    for (const rule of [{ decision: 'allow' }, { decision: 'allow', reason: 'why not' }] as const)
      expect(() => new Permissions({ rules: [rule] })).toThrow('allows everything implicitly');
    expect(() => new Permissions().remember({}, { session: 's' })).toThrow('allows everything');
    const all = await verdictOf({ rules: [{ decision: 'allow', tool: '*' }] }, [run('ls')]);
    expect(all.decision).toBe('allow');
  });

  test('throws all errors of invalid rules together', () => {
    const rules = [
      { decision: 'alow' },
      { decision: 'allow', pth: 'x' },
      { decision: 'deny', path: '{a,b}'.repeat(20) },
      { decision: 'allow' },
    ];
    expect(() => new Permissions({ rules: rules as never })).toThrow(
      /rules\[0\]\.decision[\s\S]*pth[\s\S]*rules\[2\]\.path[\s\S]*rules\[3\] allows everything/,
    );
    expect(() => new Permissions({ mode: 'yolo' as never })).toThrow(/mode is 'yolo'/);
    expect(() => new Permissions({ rules: undefined })).toThrow(/rules is undefined/);
  });

  test.each([
    { host: 'http://evil.test' },
    { host: 'http://evil.test:80' },
    { host: 'https://*.evil.test' },
    { host: 'evil.test/x' },
    { host: ' evil.test' },
    { host: '.evil.test' },
    { host: 'evil..test' },
    { host: 'a@evil.test' },
    { path: '~/.ssh/**' },
    { path: '~root/.ssh/**' },
    { path: '{src,~/.ssh}/**' },
    { path: '$HOME/.ssh/**' },
    { path: '${HOME}/.ssh/**' },
    { path: '!secret/**' },
    { path: ' secret/**' },
    { path: 'secret/** ' },
  ])('refuses %j, which would match nothing', (about) => {
    const [name] = Object.keys(about);
    for (const option of ['rules', 'folderRules'])
      expect(() => new Permissions({ [option]: [rule('deny', about)] })).toThrow(`${option}[0].${name} is`);
  });

  test('accepts each form of a host and of an odd file name', async () => {
    for (const host of [
      '*',
      '*evil.test',
      'evil.*',
      '10.*',
      '10.*.3.4',
      'evil.test:*',
      '[::1]:80',
      '*.é.test',
    ])
      expect(() => new Permissions({ rules: [rule('deny', { host })] })).not.toThrow();
    for (const path of ['a~', '~$a.docx', '$user/**', '\\~/a', '\\!a', '/srv/keys/', 'a\\ '])
      expect(() => new Permissions({ rules: [rule('deny', { path })] })).not.toThrow();
    for (const path of ['~/a', '!a', '$HOME/a', ' a', 'a ']) {
      const permissions = new Permissions();
      for (const about of rulesOfYes('do_it', {}, [write(path)]))
        permissions.remember(about, { session: 's' });
      expect((await verdictBy(permissions, [write(path)], { conversationId: 's' })).decision).toBe('allow');
    }
  });

  test('a path that ends with a slash is the folder and its contents', async () => {
    const options = { rules: [rule('deny', { path: '/srv/keys/' }), rule('deny', { path: 'secret/' })] };
    for (const path of ['/srv/keys', '/srv/keys/a', 'secret', 'secret/a/b'])
      expect((await verdictOf(options, [run('cat x', path)])).decision).toBe('deny');
    expect((await verdictOf(options, [read('secrets')])).decision).toBe('allow');
  });

  test.each([
    [{ path: 'src/**', command: 'npm test' }, 'path and command'],
    [{ path: 'src/**', host: 'a.test' }, 'path and host'],
    [{ command: 'npm test', host: 'a.test' }, 'command and host'],
    [{ action: 'write', command: 'npm test' }, "action 'write' and command"],
    [{ action: 'open', path: 'src/**' }, "action 'open' and path"],
    [{ action: 'read', host: 'a.test' }, "action 'read' and host"],
    [{ action: 'unknown', command: 'npm test' }, "action 'unknown' and command"],
  ] as const)(
    'refuses a rule with conditions that one resource cannot match together: %j',
    (about, named) => {
      const problem = `rules[0] has ${named}, which one resource cannot match together`;
      for (const decision of ['allow', 'ask', 'deny'] as const)
        expect(() => new Permissions({ rules: [{ decision, ...about }] })).toThrow(problem);
      expect(() => new Permissions().remember(about, { session: 's' })).toThrow(problem);
    },
  );
});

describe('a tool that states a path without its folder', () => {
  const FILES = { 'secret/a': '', 'src/a': '' };

  /** Decides from within a folder, as the process that started there does. */
  async function decideIn(folder: string, options: PermissionsOptions, touch: ResourceAccess) {
    const before = process.cwd();
    process.chdir(folder);
    try {
      return (await verdictOf(options, [touch])).decision;
    } finally {
      process.chdir(before);
    }
  }

  test('accesses the working directory of the process, also through links and under other names', async () => {
    const outside = newFolder(FILES);
    const root = newFolder(FILES);
    const place = newFolder();
    symlinkSync(root, join(place, 'link'));
    symlinkSync('secret', join(root, 'open'));
    symlinkSync('open/../secret/new', join(root, 'dangling'));
    symlinkSync('loop', join(root, 'loop'));
    symlinkSync(outside, join(root, 'away'));
    symlinkSync('away/new', join(root, 'farther'));
    for (const rule of ['secret/**', `${root}/secret/**`, `${place}/link/secret/**`, 'SECRET/']) {
      const options: PermissionsOptions = { mode: 'auto', rules: [{ decision: 'deny', path: rule }] };
      for (const path of [
        'secret/a',
        'open/a',
        './src/../open/new/b',
        'open/../secret/a',
        'dangling',
        `${root}/secret/a`,
        `${place}/link/secret/a`,
        `${place}/link/open/a`,
        `../${root.split('/').at(-1)}/secret/a`,
      ]) {
        expect([rule, path, await decideIn(root, options, read(path))]).toEqual([rule, path, 'deny']);
        expect([rule, path, await decideIn(root, options, run('cat x', path))]).toEqual([rule, path, 'deny']);
      }
      for (const path of ['src/a', 'new/b', 'loop'])
        expect(await decideIn(root, options, write(path))).toBe('allow');
      expect(await decideIn(root, options, run('cat x', 'open/'))).toBe('deny');
    }
    for (const path of ['away/src/a', 'away/new', 'farther', 'away/../x', 'a/'.repeat(3_000)]) {
      expect([path, await decideIn(root, { mode: 'auto' }, write(path))]).toEqual([path, 'ask']);
      const rules: PermissionRule[] = [{ decision: 'allow', path: '**' }];
      expect([path, await decideIn(root, { rules }, write(path))]).toEqual([path, 'ask']);
    }
    const rules: PermissionRule[] = [{ decision: 'allow', path: `${root}/src/**` }];
    expect(await decideIn(root, { rules }, write('src/a'))).toBe('allow');
    expect(await decideIn(root, { rules }, write('secret/a'))).toBe('ask');
  });

  test('is also decided by the real path of an absolute path in another folder', async () => {
    const root = newFolder(FILES);
    symlinkSync('secret', join(root, 'open'));
    const rules: PermissionRule[] = [{ decision: 'deny', path: `${root}/secret/**` }];
    const touch: ResourceAccess = { action: 'read', path: 'open/a', absolute: `${root}/open/a` };
    expect((await verdictOf({ rules }, [touch])).decision).toBe('deny');
  });
});

describe('a rule with an absolute path in the folder', () => {
  const FILES = { 'secret/a': 'S3CRET\n', 'src/a': '1\n', 'b.txt': '2\n' };

  function toolsIn(
    options: PermissionsOptions,
    root: string,
    files: FileSystem = new DiskFileSystem({ root }),
  ) {
    const permissions = new Permissions(options);
    const tools = new ToolRegistry().register(...fileTools(files), ...shellTools({ folder: root }));
    return async (name: string, args: Readonly<Record<string, string>>) => {
      const request = { tool: tools.get(name) as never, arguments: args, context: { callId: 'c' } as never };
      return (await permissions.explain(request)).decision;
    };
  }

  test('denies what it names to file tools and commands, also through a link and with wildcards', async () => {
    const root = newFolder(FILES);
    const link = `${root}-link`;
    symlinkSync(root, link);
    try {
      for (const path of [
        `${root}/secret/**`,
        `${root}/secret/`,
        `${link}/secret/**`,
        `${root}*/**/{y,secret}/**`,
      ]) {
        const decide = toolsIn({ rules: [{ decision: 'deny', path }] }, root);
        expect(await decide('read_file', { path: 'secret/a' })).toBe('deny');
        expect(await decide('read_file', { path: `${root}/secret/a` })).toBe('deny');
        expect(await decide('write_file', { path: 'secret/new', text: '' })).toBe('deny');
        expect(await decide('run_command', { command: 'cat secret/a' })).toBe('deny');
        expect(await decide('run_command', { command: 'cat a', folder: 'secret' })).toBe('deny');
        expect(await decide('search_files', { text: 'x' })).toBe('ask');
        expect(await decide('run_command', { command: 'grep -r x .' })).toBe('ask');
        expect(await decide('read_file', { path: 'src/a' })).toBe('allow');
        expect(await decide('run_command', { command: 'cat src/a' })).toBe('allow');
      }
    } finally {
      rmSync(link);
    }
  });

  test('denies what it names in a file system with a journal', async () => {
    const root = newFolder(FILES);
    const files = new JournaledFileSystem(new DiskFileSystem({ root }));
    const decide = toolsIn({ rules: [{ decision: 'deny', path: `${root}/secret/**` }] }, root, files);
    expect(await decide('read_file', { path: 'secret/a' })).toBe('deny');
  });

  test('allows what it names, as the same relative path would', async () => {
    const root = newFolder(FILES);
    const decide = toolsIn(
      {
        rules: [
          { decision: 'allow', path: `${root}/**` },
          { decision: 'ask', path: 'src/**' },
          { decision: 'allow', path: `${root}/src/open/**` },
        ],
      },
      root,
    );
    expect(await decide('write_file', { path: 'b.txt', text: '' })).toBe('allow');
    expect(await decide('write_file', { path: 'src/a', text: '' })).toBe('ask');
    expect(await decide('write_file', { path: 'src/open/a', text: '' })).toBe('allow');
    expect(await decide('write_file', { path: '.git/hooks/x', text: '' })).toBe('ask');
    const other = toolsIn({ rules: [{ decision: 'allow', path: `${newFolder(FILES)}/**` }] }, root);
    expect(await other('write_file', { path: 'b.txt', text: '' })).toBe('ask');
  });
});

describe('a remembered approval', () => {
  const scope = { conversationId: 'c1', data: { user: 'u1' } };
  const options = {
    userOf: ({ data }: { data: Readonly<Record<string, unknown>> }) => data.user as string | undefined,
  };

  test('applies to its session or its user until it expires or is revoked', async () => {
    const permissions = new Permissions(options);
    const decide = async (path: string, of: object): Promise<string> =>
      (await verdictBy(permissions, [write(path)], of)).decision;
    const session = permissions.remember({ action: 'write', path: 'a' }, { session: 'c1' });
    permissions.remember({ action: 'write', path: 'b' }, { user: 'u1' });
    permissions.remember({ action: 'write', path: 'c' }, { user: 'u1', until: new Date(0) });
    expect(await decide('a', scope)).toBe('allow');
    expect(await decide('a', { conversationId: 'c2', data: { user: 'u1' } })).toBe('ask');
    expect(await decide('b', { conversationId: 'c2', data: { user: 'u1' } })).toBe('allow');
    expect(await decide('b', { conversationId: 'c1', data: { user: 'u2' } })).toBe('ask');
    expect(await decide('b', {})).toBe('ask');
    expect(await decide('c', scope)).toBe('ask');
    expect(permissions.remembered()).toHaveLength(2);
    expect([permissions.revoke(session.id), permissions.revoke(session.id)]).toEqual([true, false]);
    expect(await decide('a', scope)).toBe('ask');
  });

  test('of a conversation applies only to calls of its owner, also after a restart', async () => {
    const file = join(newFolder(), 'permissions.json');
    const owned = (owner?: unknown) => ({ conversationId: 'c1', ...(owner !== undefined && { owner }) });
    const alice = owned({ user: 'alice', role: 'clerk' });
    const touches = () => [write('a')];
    const tool = defineTool({ name: 'do_it', description: 'Do it', touches, execute: () => 'done' });
    const call = { toolCalls: [{ name: 'do_it', arguments: {} }] };
    const provider = new ScriptedProvider([call, { content: 'done' }]);
    const config = { provider, model: 'm', tools: [tool], policy: new Permissions({ file }).policy };
    const { state, pending } = await runToolLoop(config, [{ role: 'user', content: 'write' }], alice);
    const answer = {
      id: pending?.[0]?.id ?? '',
      approved: true,
      remember: { scope: 'conversation' },
    } as const;
    expect((await resumeToolLoop(config, state, [answer], alice)).status).toBe('completed');
    const permissions = new Permissions({ file });
    const decide = async (scope: object): Promise<Permission> =>
      (await verdictBy(permissions, touches(), scope)).decision;
    const scopes = [alice, owned({ role: 'clerk', user: 'alice' }), owned({ user: 'bob' }), owned()];
    expect(await Promise.all(scopes.map(decide))).toEqual(['allow', 'allow', 'ask', 'ask']);
    permissions.remember({ tool: 'do_it' }, { session: 'c1' });
    expect(await Promise.all([owned(), owned('bob')].map(decide))).toEqual(['allow', 'ask']);
    permissions.remember({ tool: 'do_it' }, { session: 'c1', owner: 'bob' });
    expect(await decide(owned('bob'))).toBe('allow');
  });

  test('is stored in a file that users can read, change and delete', async () => {
    const file = join(newFolder(), 'config', 'permissions.json');
    const permissions = new Permissions({ file });
    permissions.remember({ command: 'git status **' }, { session: 'c1' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const kept = JSON.parse(readFileSync(file, 'utf8'));
    expect(kept).toMatchObject({
      about: expect.stringContaining('Remove an entry'),
      entries: [
        {
          rule: { decision: 'allow', command: 'git status **' },
          scope: { session: 'c1' },
          given: expect.any(String),
        },
      ],
    });
    const other = new Permissions({ file });
    expect((await verdictBy(other, [run('git status')], scope)).reasons[0]).toMatchObject({
      by: 'standing yes',
    });
    writeFileSync(file, JSON.stringify({ ...kept, entries: [] }));
    expect((await verdictBy(other, [run('git status')], scope)).decision).toBe('ask');
    expect((await verdictBy(permissions, [run('git status')], scope)).decision).toBe('ask');
  });

  test('an invalid file allows nothing, throws at the start and is not overwritten', async () => {
    for (const text of [
      '',
      '{',
      '{}',
      '{"entries":[{"id":"x"}]}',
      '{"entries":[{"id":"x","given":"2026","scope":{"session":"c1"},"rule":{"decision":"deny"}}]}',
    ]) {
      const file = join(newFolder(), 'permissions.json');
      // The file is still valid when the process starts.
      const permissions = new Permissions({ file });
      writeFileSync(file, text);
      const tool = defineTool({ name: 'x', description: 'x', touches: () => [], execute: () => 'done' });
      expect(
        (await new ToolRegistry({ policy: permissions.policy }).register(tool).execute('x', {})).isError,
      ).toBe(true);
      expect(() => permissions.remember({ path: 'a' }, { session: 'c1' })).toThrow(/Repair it|Write instead/);
      expect(() => new Permissions({ file })).toThrow(
        expect.objectContaining({ code: 521, message: expect.stringContaining(file) }),
      );
      expect(() => new Permissions({ file })).not.toThrow(/\.\./);
      expect(readFileSync(file, 'utf8')).toBe(text);
    }
    expect(existsSync('permissions.json')).toBe(false);
  });

  test('never overrides a deny rule or the mode read-only', async () => {
    const deny: PermissionRule = { decision: 'deny', path: 'a' };
    for (const given of [{ rules: [deny] }, { folderRules: [deny] }, { mode: 'read-only' as const }]) {
      const permissions = new Permissions(given);
      permissions.remember({ path: 'a' }, { session: 'c1' });
      expect((await verdictBy(permissions, [write('a')], scope)).decision).toBe('deny');
    }
  });

  test('of an unknown access covers only exactly the same call', async () => {
    const permissions = new Permissions();
    permissions.remember({ action: 'unknown' }, { session: 'c1' });
    expect((await verdictBy(permissions, [unknown], scope)).decision).toBe('ask');
    const [rule = {}] = rulesOfYes('do_it', {}, [unknown]);
    permissions.remember(rule, { session: 'c1' });
    expect((await verdictBy(permissions, [unknown], scope)).decision).toBe('allow');
  });

  test('of a call covers only exactly this call', async () => {
    const args = { path: 'a*[b].txt', text: 'x' };
    const [rule] = rulesOfYes('write_file', args, [write('a*[b].txt')]);
    const permissions = new Permissions();
    permissions.remember(rule ?? {}, { session: 'c1' });
    const tools = new ToolRegistry({ policy: permissions.policy }).register(
      ...fileTools(new MemoryFileSystem()),
    );
    expect((await tools.executeWithContext('write_file', args, scope)).isError).toBe(false);
    expect((await tools.executeWithContext('write_file', { ...args, path: 'axb.txt' }, scope)).isError).toBe(
      true,
    );
    const [exact] = rulesOfYes('run', { command: 'echo * \\*' }, [run('echo ?')]);
    expect(exact).toEqual({ tool: 'run', arguments: { command: 'echo \\* \\\\\\*' } });
  });
});

describe('rules of the folder', () => {
  const decision = fc.constantFrom<Permission>('allow', 'ask', 'deny');
  const path = fc.constantFrom('**', '*', 'a', 'a/**', '**/b', 'a/b', '.git/**', '/etc/**');
  const ruleOf: fc.Arbitrary<PermissionRule> = fc.oneof(
    fc.record({ decision, path }),
    fc.record({ decision, action: fc.constantFrom('read', 'write', 'run', 'unknown' as const) }),
    fc.record({ decision, path, action: fc.constantFrom('read', 'write' as const) }),
    fc.record({ decision, command: fc.constantFrom('a', 'a **', 'a b', 'rm') }),
    fc.record({ decision, tool: fc.constantFrom('do_it', '*', 'other') }),
  );
  const touch: fc.Arbitrary<ResourceAccess> = fc.constantFrom(
    read('a'),
    write('a/b'),
    write('.git/x'),
    read('/etc/x'),
    run('a b'),
    run('a ?'),
    run('rm x', 'a/b'),
    unknown,
    {
      action: 'write',
      path: 'a',
      isDeep: true,
    },
  );
  const RANK = ['allow', 'ask', 'deny'];

  test('never make a decision less strict', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          mode: fc.constantFrom('read-only', 'ask', 'auto' as const),
          rules: fc.array(ruleOf, { maxLength: 4 }),
        }),
        fc.array(ruleOf, { maxLength: 4 }),
        fc.array(touch, { maxLength: 3 }),
        async (options, folderRules, touches) => {
          const without = await verdictOf(options, touches);
          const withThem = await verdictOf({ ...options, folderRules }, touches);
          expect(RANK.indexOf(withThem.decision)).toBeGreaterThanOrEqual(RANK.indexOf(without.decision));
          // A deny rule of the application always applies.
          const denied = await verdictOf(
            { ...options, rules: [...options.rules, { decision: 'deny', tool: '*' }] },
            touches,
          );
          expect(denied.decision).toBe('deny');
        },
      ),
      { numRuns: 400 },
    );
  });
});
