import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT } from '../house/repository.js';

/** A project outside the repository that has the packed package in its `node_modules`. */
export interface Installation {
  readonly folder: string;
  /** The unpacked package. */
  readonly unpacked: string;
  remove(): void;
}

/** What a script of a project answered. */
export interface ScriptRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Packs the repository as it would be published and installs it into a new project, beside links to the
 * packages that the repository itself has, except those left out.
 */
export function installPacked({ without = [] }: { readonly without?: readonly string[] } = {}): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-packed-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', type: 'module' }));
  unpack(pack(folder), folder);
  cpSync(join(folder, 'package'), join(modules, 'toolwright'), { recursive: true });
  for (const name of packageNames().filter((one) => !without.includes(one))) link(name, modules);
  return {
    folder,
    unpacked: join(modules, 'toolwright'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Runs a script in the project, as a module or as CommonJS. */
export function runScript({ folder }: Installation, code: string, type: 'mjs' | 'cjs' = 'mjs'): ScriptRun {
  const file = join(folder, `script.${type}`);
  writeFileSync(file, code);
  return runNode(folder, file);
}

/** Runs a file in a folder with this very Node, without the flags that Jest needs. */
export function runNode(folder: string, file: string): ScriptRun {
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

function pack(folder: string): string {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  // Under npm scripts this is the npm that runs them; a shell is what Windows needs for the bare name.
  const npm = process.env.npm_execpath;
  const run = npm?.endsWith('npm-cli.js')
    ? spawnSync(process.execPath, [npm, ...args], { cwd: ROOT, encoding: 'utf8' })
    : spawnSync('npm', args, { cwd: ROOT, encoding: 'utf8', shell: process.platform === 'win32' });
  if (run.status !== 0) throw new Error(`npm pack failed: ${run.stderr}`);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error(`npm pack wrote no tarball: ${run.stdout}`);
  return tarball;
}

function unpack(tarball: string, folder: string): void {
  const run = spawnSync('tar', ['-xzf', tarball], { cwd: folder, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`The tarball could not be unpacked: ${run.stderr}`);
}

function link(name: string, modules: string): void {
  const place = join(modules, name);
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules', name), place, 'junction');
}

/** The packages that the repository has at its top level, scoped ones included. */
function packageNames(): string[] {
  const modules = join(ROOT, 'node_modules');
  return readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(modules, name)).map((one) => `${name}/${one}`) : [name],
    );
}
