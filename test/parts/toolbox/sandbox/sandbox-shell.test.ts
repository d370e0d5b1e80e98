import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { ScriptedProvider } from 'toolwright/testing';
import { Permissions, type PermissionsOptions } from 'toolwright/toolbox/permissions';
import { type SandboxShellOptions, sandboxShell } from 'toolwright/toolbox/sandbox';
import { shellTools } from 'toolwright/toolbox/shell';
import { buildProgram } from '../../../processes/build-program.js';
import { describeSandbox } from '../../../services/services.js';
import { newFolder, textsOf } from '../files/folders.js';

const FILES = {
  'a.txt': 'inside\n',
  '.env': 'S3CRET\n',
  'sub/.env': 'S3CRET\n',
  'vault/key': 'S3CRET\n',
  'kept.js': '1\n',
};

const inheriting = buildProgram('test/parts/toolbox/sandbox/inheriting-program.ts');
afterAll(inheriting.remove);

function sandbox(options: Partial<SandboxShellOptions> = {}, rules: PermissionsOptions['rules'] = []) {
  const folder = options.folder ?? newFolder(FILES);
  const permissions = new Permissions({ mode: 'auto', rules });
  const shell = sandboxShell({ folder, ...permissions.closedPaths(), ...options });
  const tools = new ToolRegistry({ policy: permissions.policy }).register(...shellTools(shell));
  const run = async (command: string): Promise<string> =>
    (await tools.execute('run_command', { command, seconds: 20 })).forLLM;
  return { folder, run };
}

describeSandbox('sandboxShell', () => {
  test('runs any command in mode auto, with write access to the folder', async () => {
    const { folder, run } = sandbox();
    expect(await run('x=1; for y in a b; do echo "$x$y" >> new.txt; done; cat new.txt')).toMatch(/^1a\n1b\n/);
    expect(existsSync(join(folder, 'new.txt'))).toBe(true);
    expect(await run('exit 3')).toContain('exit code 3');
  });

  test('makes denied paths unreadable and protected paths unwritable, without leaving files behind', async () => {
    const rules = [
      { decision: 'deny', path: '**/.env*' },
      { decision: 'deny', path: 'vault/**' },
      { decision: 'ask', action: 'write', path: 'kept.js' },
      { decision: 'deny', tool: '*_file*', path: 'a.txt' },
    ] as const;
    const { folder, run } = sandbox({}, rules);
    const told = await run(
      'for x in .env sub/.env vault/key; do cat $PWD/$x; done; cat a.txt; y=kept.js; cat $y',
    );
    expect(told).not.toContain('S3CRET');
    expect(told).toContain('inside\n1\n');
    await run(
      'y=js; for x in kept.$y .npmrc .git/config .git/hooks/x; do echo evil > $PWD/$x; done; mv sub x; mv .git x',
    );
    expect(readdirSync(folder).sort()).toEqual(['.env', 'a.txt', 'kept.js', 'sub', 'vault']);
    expect(await run('y=kept.js; cat $y; ls -la .npmrc')).toContain('1\n');
  });

  test('makes denied paths with an absolute path in the folder unreadable', async () => {
    const folder = newFolder(FILES);
    const rules = [
      { decision: 'deny', path: `${folder}/vault/` },
      { decision: 'ask', action: 'write', path: `${folder}/kept.js` },
    ] as const;
    const { run } = sandbox({ folder }, rules);
    const output = await run('x=vault; cat $x/key; cat a.txt');
    expect(output).toContain('inside');
    expect(output).not.toContain('S3CRET');
    await run('y=js; echo evil > kept.$y');
    expect(textsOf(folder)['kept.js']).toBe('1\n');
  });

  test('makes denied paths outside of the folder unreadable, also through links and in readable folders', async () => {
    const outside = newFolder({
      'keys/a': 'S3CRET\n',
      'sub/.env': 'S3CRET\n',
      'one.txt': 'S3CRET\n',
      b: 'open\n',
    });
    symlinkSync(outside, `${outside}-link`);
    symlinkSync(join(outside, 'one.txt'), join(outside, 'pointing'));
    const rules = [
      { decision: 'deny', path: '**/.env*' },
      { decision: 'deny', path: `${outside}-link/keys/**` },
      { decision: 'ask', path: `${outside}/*ing` },
      { decision: 'deny', path: '/etc/pass*' },
      { decision: 'deny', path: '/usr/bin/[v]dir' },
    ] as const;
    const { run } = sandbox({ readable: [outside, `${outside}-link`] }, rules);
    const told = await run(
      `for d in ${outside} ${outside}-link; do cat $d/keys/a $d/sub/.env $d/pointing $d/one.txt $d/b; done; e=etc b=bin; grep -c root /$e/passwd; cat /usr/$b/vdir /$b/vdir | wc -c`,
    );
    expect(told).not.toContain('S3CRET');
    expect(told).toMatch(/open\n(?:.*\n)*?open\n/);
    for (const path of ['/etc/passwd', '/usr/bin/vdir', '/bin/vdir'])
      expect(told).toContain(`${path}: Permission denied`);
  });

  test('a protected path inside an unreadable folder does not prevent the start', async () => {
    const folder = newFolder({ 'sub/.npmrc': 'S3CRET\n', 'sub/deep/.git/config': 'x\n' });
    const { run } = sandbox({ folder, unreadable: ['sub'], unwritable: ['sub/deep/*'] });
    expect(await run('x=1; cat sub/.npmrc; echo ran')).toMatch(/^ran$/m);
  });

  test('makes protected names in subfolders unwritable, and reports new ones', async () => {
    const folder = newFolder({
      ...FILES,
      'pkg/.git/config': 'old\n',
      'pkg/deep/.npmrc': 'old\n',
      'pkg/a': 'a\n',
    });
    symlinkSync('../a.txt', join(folder, 'pkg/.yarnrc'));
    const warn = jest.fn();
    const { run } = sandbox({ folder, logger: { ...console, warn } });
    const told = await run(
      'x=evil; mkdir pkg/.git/hooks; for f in pkg/.git/config pkg/deep/.npmrc; do echo $x > $f; rm -f $f; done; mv pkg moved; rm -rf pkg/.git; echo b > pkg/a',
    );
    expect(told).not.toContain('New in the folder');
    expect(textsOf(join(folder, 'pkg'))).toEqual({
      '.git/config': 'old\n',
      'deep/.npmrc': 'old\n',
      a: 'b\n',
    });
    expect(warn).not.toHaveBeenCalled();
    expect(await run('x=1; mkdir -p new/sub; cd new/sub; git init -q .; git init -q --bare ../bare')).toMatch(
      /New in the folder: new\/bare \(bare repository\), new\/sub\/\.git \(file or folder\)\. Git and package managers/,
    );
    expect(await run('rm pkg/.yarnrc; echo x > pkg/.yarnrc; touch HEAD commondir')).toMatch(
      /pkg\/\.yarnrc \(file or folder\), \. \(bare repository\)/,
    );
    expect(warn.mock.calls.flat().join()).toContain('new/sub/.git');
    const { run: mayCommit } = sandbox({ folder, writable: ['.git'] });
    expect(await mayCommit('x=1; git init -q third; git -C new/sub config a.b c')).not.toContain('New in');
  });

  test('hides the home, other folders, system secrets and other processes', async () => {
    const outside = newFolder({ 'secret.txt': 'S3CRET\n' });
    const { run } = sandbox();
    const told = await run(
      `y=x; cat ${outside}/secret.txt /etc/shadow; ls -A ~ /home /root /tmp; ps ax | wc -l; touch ${outside}/x`,
    );
    expect(told).not.toContain('S3CRET');
    expect(told).toMatch(/No such file/);
    expect(readdirSync(outside)).toEqual(['secret.txt']);
    const { run: readsIt } = sandbox({ readable: [outside] });
    expect(await readsIt(`cat ${outside}/secret.txt; echo x > ${outside}/x`)).toContain('S3CRET');
    expect(readdirSync(outside)).toEqual(['secret.txt']);
  });

  const onLinux = process.platform === 'linux' ? test : test.skip;
  onLinux('makes settings of the kernel unwritable, also for root', async () => {
    const { run } = sandbox();
    const output = await run(
      'for x in sys sysrq-trigger irq bus fs acpi scsi; do find /proc/$x -writable; done; { : >> /proc/sys/kernel/core_pattern; } && echo open; cat /proc/sys/kernel/core_pattern > /dev/null && echo readable',
    );
    expect(output).toMatch(/core_pattern: (Read-only file system|Permission denied)/);
    expect(output).toContain('readable');
    expect(output).not.toMatch(/^(\/proc|open)/m);
  });

  test('does not pass on open files of this process', async () => {
    const outside = newFolder({ 'secret.txt': 'S3CRET\n' });
    const file = openSync(outside, 'r');
    const command = 'for f in /proc/self/fd/*; do cat $f/secret.txt; echo x > $f/x; done; echo ran';
    const { stdout } = spawnSync(process.execPath, [inheriting.file, newFolder(), command], {
      stdio: ['ignore', 'pipe', 'inherit', ...Array.from({ length: 60 }, () => 'ignore' as const), file],
      encoding: 'utf8',
    });
    closeSync(file);
    expect(stdout).toContain('ran');
    expect(stdout).not.toContain('S3CRET');
    expect(readdirSync(outside)).toEqual(['secret.txt']);
  });

  test('allows connections only to the listed hosts', async () => {
    const server = createServer((_, response) => response.end('served')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const ask = `curl -sS -m 5 http://127.0.0.1:${port}/; curl -sS -m 5 --noproxy '*' http://127.0.0.1:${port}/`;
    expect(await sandbox().run(ask)).not.toContain('served');
    expect(await sandbox({ hosts: ['*.example.com'] }).run(ask)).not.toContain('served');
    expect(await sandbox({ hosts: [`127.0.0.1:${port}`] }).run(ask)).toMatch(/^served/);
    expect(await sandbox({ hosts: ['127.0.0.1:1'] }).run(ask)).not.toContain('served');
    server.close();
  });

  test('allows writes to protected paths that are listed as writable', async () => {
    const { folder, run } = sandbox({ writable: ['.git'] });
    expect(await run('git init -q . && git status -s | head -1')).toContain('exit code 0');
    expect(existsSync(join(folder, '.git', 'HEAD'))).toBe(true);
  });

  test('refuses a protected path that is a link, folders that contain the home, and invalid options', async () => {
    const folder = newFolder(FILES);
    symlinkSync('a.txt', join(folder, '.npmrc'));
    expect(await sandbox({ folder }).run('x=1; echo ran')).toContain("'.npmrc' is a link");
    expect(() => sandboxShell({ folder: homedir() })).toThrow(/home folder of the user/);
    for (const [options, problem] of [
      [{ writable: ['a'] }, /writable\[0\]/],
      [{ unreadable: ['../outside/**'] }, /unreadable\[0\] is '\.\.\/outside\/\*\*'/],
      [{ unreadable: [`${tmpdir()}/**`] }, /closes the folder itself/],
      [{ readable: ['/nope'] }, /readable\[0\] is '\/nope'/],
    ] as const)
      expect(() => sandboxShell({ folder, ...options })).toThrow(
        expect.objectContaining({ code: 521, message: expect.stringMatching(problem) }),
      );
  });

  test('refuses other unsuitable folders with the reason', () => {
    const told = (folder: string): unknown => {
      try {
        return sandboxShell({ folder });
      } catch (error) {
        return error;
      }
    };
    const refused = (cause: RegExp) =>
      expect.objectContaining({ code: 521, message: expect.stringMatching(cause) });
    expect(told('/')).toEqual(refused(/folder is \/, which contains the home folder of the user/));
    expect(told(tmpdir())).toEqual(refused(/which contains the temporary folder of this process/));
    expect(told('/usr')).toEqual(refused(/which contains the programs of the system/));
    expect(told(join(newFolder(), 'none'))).toEqual(refused(/none, which is not an existing folder/));
  });

  test('createAgent uses it for commands in mode auto', async () => {
    const folder = newFolder(FILES);
    const rules = [{ decision: 'deny', path: '**/.env*' }] as const;
    await using agent = await createAgent({
      provider: new ScriptedProvider([]),
      model: 'm',
      folder,
      toolboxes: [{ shell: { sandbox: { unwritable: ['kept.js'] } } }],
      permissions: { mode: 'auto', rules },
    });
    const { forLLM } = await agent.registry.execute('run_command', {
      command: 'x=.env; cat $x; echo y > kept.js; echo z > z; cat kept.js z',
    });
    expect(forLLM).not.toContain('S3CRET');
    expect(forLLM).toContain('1\nz\n');
  });
});

describe('if no sandbox is available', () => {
  async function without<Value>(work: () => Promise<Value>): Promise<Value> {
    const { PATH } = process.env;
    process.env.PATH = newFolder();
    try {
      return await work();
    } finally {
      process.env.PATH = PATH;
    }
  }

  test('sandboxShell and an agent in mode auto throw with a suggested fix', async () => {
    const folder = newFolder(FILES);
    const line =
      /^No sandbox for commands: bwrap is not installed\. Install bubblewrap \([^\n]*'external'[^\n]*mode 'ask'\.$/;
    await without(async () => {
      expect(() => sandboxShell({ folder })).toThrow(
        expect.objectContaining({ code: 543, message: expect.stringMatching(line) }),
      );
      const base = { provider: new ScriptedProvider([]), model: 'm', folder };
      const permissions = { mode: 'auto' } as const;
      await expect(createAgent({ ...base, toolboxes: ['shell'], permissions })).rejects.toThrow(line);
      await using asking = await createAgent({ ...base, toolboxes: ['shell'], permissions: { mode: 'ask' } });
      await using external = await createAgent({
        ...base,
        toolboxes: [{ shell: { sandbox: 'external' } }],
        permissions,
      });
      expect([asking, external].map(({ registry }) => registry.count())).toEqual([4, 4]);
    });
  });

  test('sandboxShell refuses a bwrap that does not isolate commands', async () => {
    const folder = newFolder(FILES);
    const bin = newFolder();
    // Runs the command without any isolation.
    writeFileSync(
      join(bin, 'bwrap'),
      '#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n',
      { mode: 0o755 },
    );
    const { PATH } = process.env;
    process.env.PATH = `${bin}:${PATH}`;
    try {
      expect(() => sandboxShell({ folder })).toThrow(expect.objectContaining({ code: 543 }));
    } finally {
      process.env.PATH = PATH;
    }
  });
});
