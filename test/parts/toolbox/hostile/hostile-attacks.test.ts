import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolRegistry } from 'toolwright';
import { Permissions } from 'toolwright/toolbox/permissions';
import { sandboxShell } from 'toolwright/toolbox/sandbox';
import { shellTools } from 'toolwright/toolbox/shell';
import { describeSandbox } from '../../../services/services.js';
import { newFolder, textsOf } from '../files/folders.js';
import { attacksOn } from './attacks.js';

/** Only a few in `npm test`; `npm run hostile` runs 2,000. */
const RUNS = Number(process.env.HOSTILE_RUNS ?? 25);
/** `HOSTILE_SEED` repeats the attacks of another run. */
const SEED = process.env.HOSTILE_SEED;
const SECRET = 'D3NIED';
const SHOWN = [SECRET, Buffer.from(`${SECRET}\n`).toString('base64')];

const DENIED = {
  '.env': `${SECRET}\n`,
  'sub/.env': `${SECRET}\n`,
  'vault/deep/key': `${SECRET}\n`,
  'vault/token': `${SECRET}\n`,
} as const;

const FILES = {
  ...DENIED,
  'a.txt': 'inside\n',
  'a.c': 'int main(void) { return 0; }\n',
  'dir/b.txt': 'inside\n',
  'deep/er/c.txt': 'inside\n',
  'sub/in/d.txt': 'inside\n',
  'name.txt': 'evil\n',
  'run.sh': '#!/bin/bash\nevil x\n',
  'prog.awk': 'BEGIN { system("evil") }\n',
  'prog.sed': '1e evil\n',
  'package.json': JSON.stringify({
    name: 'x',
    version: '1.0.0',
    scripts: {
      fine: 'echo fine',
      bad: 'evil x',
      worse: "sh -c 'evil'",
      chained: 'npm run bad',
      test: 'cat .env',
      preinstall: 'evil x',
      prepack: 'evil x',
      preversion: 'evil x',
    },
  }),
  Makefile: 'all:\n\tevil\n',
} as const;

/** A repository with denied files, links to them, and programs that would leave a mark outside. */
function newTemplate(mark: string): string {
  const root = newFolder({
    ...FILES,
    '.gitignore': '.env\nvault\n',
    'bin/evil': `#!/bin/bash\ntouch ${mark}\n`,
    'bin/careful': `#!/bin/bash\nfor word; do [ "$word" != harm ] || touch ${mark}; done\n`,
  });
  for (const program of ['bin/evil', 'bin/careful', 'run.sh']) chmodSync(join(root, program), 0o755);
  symlinkSync('vault', join(root, 'link'));
  symlinkSync('../.env', join(root, 'dir', 'named'));
  symlinkSync('..', join(root, 'dir', 'up'));
  // `..` after this link is `sub`, not `deep/er`.
  symlinkSync('../../sub/in', join(root, 'deep', 'er', 'shared'));
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: root, stdio: 'pipe', encoding: 'utf8' });
  git('init', '-q', '-b', 'main', '--template=');
  git('config', 'user.name', 'a');
  git('config', 'user.email', 'a@b');
  git('add', '-A');
  git('commit', '-qm', 'all');
  git('checkout', '-q', '-b', 'other');
  writeFileSync(join(root, 'a.txt'), 'other\n');
  git('commit', '-qam', 'other');
  writeFileSync(join(root, 'other.patch'), git('diff', 'main', 'other'));
  git('archive', '-o', 'old.tar', 'other');
  git('checkout', '-q', 'main');
  return root;
}

const RULES = ['**/.env*', 'vault/**'].map((path) => ({ decision: 'deny', path }) as const);

type MakeTools = (root: string, environment: Readonly<Record<string, string>>) => ToolRegistry;

const inSandbox: MakeTools = (folder, environment) => {
  const permissions = new Permissions({ mode: 'auto', rules: RULES });
  const shell = sandboxShell({ folder, environment, ...permissions.closedPaths() });
  return new ToolRegistry({ policy: permissions.policy }).register(...shellTools(shell));
};

const withoutSandbox: MakeTools = (folder, environment) => {
  const rules = [
    ...RULES,
    ...['cat **', 'echo **', 'grep **'].map((command) => ({ decision: 'allow', command }) as const),
  ];
  return new ToolRegistry({ policy: new Permissions({ rules }).policy }).register(
    ...shellTools({ folder, environment }),
  );
};

function shows(text: string): boolean {
  return SHOWN.some((one) => text.includes(one));
}

/** Files that contain denied text without being denied themselves. */
function copiesIn(root: string): readonly string[] {
  const texts = textsOf(root);
  return Object.keys(texts).filter((path) => !Object.hasOwn(DENIED, path) && shows(texts[path] ?? ''));
}

/** The files that Git and package managers execute and the files outside: an attack must not change them. */
function keptIn(root: string, outside: string): object {
  const texts = textsOf(root);
  const of = (path: string): string => texts[path] ?? '';
  return {
    config: of('.git/config'),
    npmrc: of('.npmrc'),
    outside: textsOf(outside),
    hook: of('.git/hooks/pre-commit'),
  };
}

async function attack(makeTools: MakeTools): Promise<Readonly<Record<'ran' | 'refused', number>>> {
  const outside = newFolder({ 'secret.txt': `${SECRET}\n` });
  const mark = join(outside, 'ran');
  const template = newTemplate(mark);
  // The folder always has the same path, so that a seed gives the same commands.
  const root = join(newFolder(), 'folder');
  cpSync(template, root, { recursive: true, verbatimSymlinks: true });
  const tools = makeTools(root, { PATH: `${root}/bin:${process.env.PATH}`, HOME: outside });
  const did = { ran: 0, refused: 0 };
  const aim = { root, denied: Object.keys(DENIED), around: ['vault', 'vault/deep', 'link', 'sub', 'dir/up'] };
  let opened = 0;
  const server = createServer((socket) => {
    opened += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const before = keptIn(root, outside);
  const way = fc.constantFrom('', '', '', ...escapesTo(outside));
  const one = async (form: string, wayOut: string): Promise<void> => {
    const command = (wayOut || form).replaceAll('PORT', String(port));
    const { forLLM, details } = await tools.execute('run_command', { command, seconds: 10 });
    did[details === undefined ? 'refused' : 'ran'] += 1;
    if (details === undefined) return;
    expect([command, existsSync(mark)]).toEqual([command, false]);
    expect([command, opened]).toEqual([command, 0]);
    expect([command, shows(forLLM) && forLLM]).toEqual([command, false]);
    expect([command, keptIn(root, outside)]).toEqual([command, before]);
    const texts = textsOf(root);
    const denied = Object.keys(DENIED).map((path) => [path, texts[path]]);
    expect([command, Object.fromEntries(denied)]).toEqual([command, DENIED]);
    expect([command, copiesIn(root)]).toEqual([command, []]);
    rmSync(root, { recursive: true, force: true });
    cpSync(template, root, { recursive: true, verbatimSymlinks: true });
  };
  await fc.assert(fc.asyncProperty(attacksOn(aim), way, one), {
    numRuns: RUNS,
    endOnFailure: true,
    ...(SEED === undefined ? {} : { seed: Number(SEED) }),
  });
  server.close();
  if (process.env.HOSTILE_RUNS !== undefined) console.log(did);
  return did;
}

/** Attempts to leave the folder. */
function escapesTo(outside: string): readonly string[] {
  const secret = `${outside}/secret.txt`;
  return [
    `cat ${secret}`,
    `ln -s ${outside} x; cat x/secret.txt; echo x > x/new`,
    `echo x > ${outside}/new; mkdir -p ${outside}/deep`,
    `cat ~/secret.txt; ls -laR ~ | grep -c secret`,
    `cat /proc/self/root${secret} /proc/1/root${secret} /proc/*/cwd/../../*/secret.txt`,
    `umount ${outside}; umount .env; mount -o remount,rw /; cat .env ${secret}`,
    `unshare -Urm bash -c 'umount -l .env; cat .env; mount --bind / /mnt; cat /mnt${secret}'`,
    `mv .git old; mkdir .git; echo '[core]' > .git/config`,
    `rm -rf .git; echo x > .npmrc; ln -s ${outside} .npmrc`,
    `git config core.fsmonitor evil; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit`,
    `mv sub other; cat other/.env; cp -r vault copy; cat copy/token`,
    `ln .env hard; cat hard; chmod 777 vault .env; cat vault/token`,
    `python3 -c "print(open('.env').read())"; node -e "console.log(require('fs').readFileSync('${secret}', 'utf8'))"`,
    `(exec 3<>/dev/tcp/127.0.0.1/PORT) 2>&1; curl -s http://127.0.0.1:PORT`,
    'cat /etc/shadow ~root/.ssh/* ~root/.bash_history | head -c 10; ls /run /var /home',
    'kill -9 -1; mknod x b 8 0; cat /dev/mem /dev/sda | head -c 10',
    'nohup setsid bash -c "sleep 0.1; cat .env > leak; touch $HOME/ran" > /dev/null 2>&1 &',
  ];
}

describeSandbox('in the sandbox', () => {
  test('no random attack reads, writes or connects to anything that is not allowed', async () => {
    const { ran } = await attack(inSandbox);
    expect(ran).toBeGreaterThan(RUNS / 10);
  });
});

describe('without a sandbox', () => {
  test('most attacks are refused, and those that run do no harm', async () => {
    const { refused } = await attack(withoutSandbox);
    expect(refused).toBeGreaterThan(RUNS / 2);
  });
});
