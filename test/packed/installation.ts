import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { builtFile } from '../processes/built-file.js';
import { type NodeRun, outputOfNode, PROCESS_LIMIT_MS, runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

/** The package as it is published. */
export interface PackedPackage {
  readonly tarball: string;
  /** The folder of its files. */
  readonly unpacked: string;
  remove(): void;
}

/** A project outside the repository with the package in its `node_modules`. */
export interface Installation {
  readonly folder: string;
  /** The folder of the package in its `node_modules`. */
  readonly unpacked: string;
  remove(): void;
}

/** Packs the current build. */
export function packPackage(): PackedPackage {
  builtFile('dist/src/index.js');
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-tarball-'));
  const tarball = pack(folder);
  unpack(tarball, folder);
  return {
    tarball: join(folder, tarball),
    unpacked: join(folder, 'package'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Installs it in a new project, with links to the packages of the repository, except those in `without`. */
export function installPacked(
  { unpacked }: PackedPackage,
  { without = [] }: { readonly without?: readonly string[] } = {},
): Installation {
  return install((path) => cpSync(unpacked, path, { recursive: true }), without);
}

/** Installs the current build without packing, which is faster, for tests that do not depend on the packed files. */
export function installBuilt(): Installation {
  builtFile('dist/src/index.js');
  return install((path) => {
    for (const part of ['package.json', 'dist'])
      cpSync(join(ROOT, part), join(path, part), { recursive: true });
  });
}

function install(copyTo: (path: string) => void, without: readonly string[] = []): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-packed-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', type: 'module' }));
  copyTo(join(modules, 'toolwright'));
  for (const name of packageNames().filter((name) => !without.includes(name))) link(name, modules);
  return {
    folder,
    unpacked: join(modules, 'toolwright'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Runs a script in the project, as a module or as CommonJS. */
export function runScript({ folder }: Installation, code: string, type: 'mjs' | 'cjs' = 'mjs'): NodeRun {
  const file = join(folder, `script.${type}`);
  writeFileSync(file, code);
  return runNode([file], { folder });
}

function pack(folder: string): string {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  // npm scripts provide the path of npm. Otherwise, Windows needs a shell to find `npm`.
  const npm = process.env.npm_execpath;
  if (npm?.endsWith('npm-cli.js')) outputOfNode([npm, ...args], { folder: ROOT });
  else runTool('npm', args, { cwd: ROOT, shell: process.platform === 'win32' });
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm pack wrote no tarball');
  return tarball;
}

function unpack(tarball: string, folder: string): void {
  runTool('tar', ['-xzf', tarball], { cwd: folder });
}

function runTool(tool: string, args: readonly string[], options: { cwd: string; shell?: boolean }): void {
  const run = spawnSync(tool, args, { ...options, encoding: 'utf8', timeout: PROCESS_LIMIT_MS });
  if (run.status !== 0) throw new Error(`${tool} ${args.join(' ')} failed: ${run.error ?? run.stderr}`);
}

function link(name: string, modules: string): void {
  const path = join(modules, name);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules', name), path, 'junction');
}

/** The packages in the `node_modules` of the repository, including scoped packages. */
function packageNames(): string[] {
  const modules = join(ROOT, 'node_modules');
  return readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(modules, name)).map((part) => `${name}/${part}`) : [name],
    );
}
