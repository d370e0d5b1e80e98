import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolRegistry } from 'toolwright';
import { Permissions } from 'toolwright/toolbox/permissions';
import { shellTools } from 'toolwright/toolbox/shell';
import { newFolder, textsOf } from '../files/folders.js';
import { attacksOn } from './attacks.js';

/** In `npm test` a few; `npm run hostile` makes 10,000. */
const RUNS = Number(process.env.HOSTILE_RUNS ?? 60);
/** `HOSTILE_SEED` makes those of another run again. */
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

/**
 * A repository with something in it that is denied, links to that, a program that is denied and leaves a mark, and a
 * branch on which all that is denied says something else.
 */
function newTemplate(mark: string): string {
  const root = newFolder({
    ...FILES,
    'bin/evil': `#!/bin/bash\ntouch ${mark}\n`,
    'bin/careful': `#!/bin/bash\nfor word; do [ "$word" != harm ] || touch ${mark}; done\n`,
  });
  for (const program of ['bin/evil', 'bin/careful', 'run.sh']) chmodSync(join(root, program), 0o755);
  symlinkSync('vault', join(root, 'link'));
  symlinkSync('../.env', join(root, 'dir', 'named'));
  symlinkSync('..', join(root, 'dir', 'up'));
  // Behind it, `..` is `sub` and not `deep/er`.
  symlinkSync('../../sub/in', join(root, 'deep', 'er', 'shared'));
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: root, stdio: 'pipe', encoding: 'utf8' });
  git('init', '-q', '-b', 'main', '--template=');
  git('config', 'user.name', 'a');
  git('config', 'user.email', 'a@b');
  git('add', '-A', '-f');
  git('commit', '-qm', 'all');
  git('checkout', '-q', '-b', 'other');
  for (const path of Object.keys(DENIED)) writeFileSync(join(root, path), 'other\n');
  git('commit', '-qam', 'other');
  writeFileSync(join(root, 'other.patch'), git('diff', 'main', 'other'));
  writeFileSync(join(root, 'mail.patch'), git('format-patch', '--stdout', 'main..other'));
  git('archive', '-o', 'old.tar', 'other');
  git('archive', '-o', 'old.zip', 'other');
  git('checkout', '-q', 'main');
  return root;
}

function toolsIn(root: string): ToolRegistry {
  const { policy } = new Permissions({
    mode: 'auto',
    rules: [
      // Of what they allow, words may be unknown.
      { decision: 'allow', command: 'cat **' },
      { decision: 'allow', command: 'echo **' },
      { decision: 'deny', command: 'evil' },
      { decision: 'deny', command: 'careful harm' },
      { decision: 'deny', host: '127.0.0.1' },
      { decision: 'deny', path: '**/.env*' },
      { decision: 'deny', path: 'vault/**' },
    ],
  });
  const environment = { PATH: `${root}/bin:${process.env.PATH}`, HOME: root };
  return new ToolRegistry({ policy }).register(...shellTools({ folder: root, environment }));
}

function shows(text: string): boolean {
  return SHOWN.some((one) => text.includes(one));
}

/** Where what is denied stands in files that are not denied. */
function copiesIn(root: string): readonly string[] {
  const texts = textsOf(root);
  const isDenied = (path: string): boolean =>
    Object.hasOwn(DENIED, path) || /^(\.git\/|other\.patch$|mail\.patch$)/.test(path);
  return Object.keys(texts).filter((path) => !isDenied(path) && shows(texts[path] ?? ''));
}

test('ShellTools run nothing that is denied, and read and change nothing that is denied, however it is said', async () => {
  const mark = join(newFolder(), 'ran');
  const template = newTemplate(mark);
  // The folder stays the same one, so that a seed makes the same commands.
  const root = join(newFolder(), 'folder');
  let isFresh = true;
  cpSync(template, root, { recursive: true, verbatimSymlinks: true });
  const tools = toolsIn(root);
  const did = { ran: 0, refused: 0 };
  const aim = { root, denied: Object.keys(DENIED), around: ['vault', 'vault/deep', 'link', 'sub', 'dir/up'] };
  let opened = 0;
  const server = createServer((socket) => {
    opened += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const attack = async (form: string): Promise<void> => {
    const command = form.replaceAll('PORT', String(port));
    if (!isFresh) {
      rmSync(root, { recursive: true, force: true });
      cpSync(template, root, { recursive: true, verbatimSymlinks: true });
    }
    const { forLLM, details } = await tools.execute('run_command', { command, seconds: 5 });
    isFresh = details === undefined;
    did[isFresh ? 'refused' : 'ran'] += 1;
    if (isFresh) return;
    expect([command, existsSync(mark)]).toEqual([command, false]);
    expect([command, opened]).toEqual([command, 0]);
    expect([command, shows(forLLM) && forLLM]).toEqual([command, false]);
    const texts = textsOf(root);
    const denied = Object.keys(DENIED).map((path) => [path, texts[path]]);
    expect([command, Object.fromEntries(denied)]).toEqual([command, DENIED]);
    expect([command, copiesIn(root)]).toEqual([command, []]);
  };
  await fc.assert(fc.asyncProperty(attacksOn(aim), attack), {
    numRuns: RUNS,
    endOnFailure: true,
    ...(SEED === undefined ? {} : { seed: Number(SEED) }),
  });
  server.close();
  expect(did.ran).toBeGreaterThan(RUNS / 50);
  expect(did.refused).toBeGreaterThan(RUNS / 50);
  if (process.env.HOSTILE_RUNS !== undefined) console.log(did);
});
