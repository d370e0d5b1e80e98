import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { builtFile } from '../processes/built-file.js';
import { type NodeRun, outputOfNode, PROCESS_LIMIT_MS, runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

/** The package as it would be published, unpacked. */
export interface PackedPackage {
  readonly tarball: string;
  readonly unpacked: string;
  remove(): void;
}

/** A project outside the repository that has the packed package in its `node_modules`. */
export interface Installation {
  readonly folder: string;
  /** The package within its `node_modules`. */
  readonly unpacked: string;
  remove(): void;
}

/** Packs the repository as it is built. */
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

/** Installs it into a new project, beside links to the packages that the repository has, except those left out. */
export function installPacked(
  { unpacked }: PackedPackage,
  { without = [] }: { readonly without?: readonly string[] } = {},
): Installation {
  return install((place) => cpSync(unpacked, place, { recursive: true }), without);
}

/** The same of what is built, unpacked: for what does not ask what the package has, and packing takes its time. */
export function installBuilt(): Installation {
  builtFile('dist/src/index.js');
  return install((place) => {
    for (const part of ['package.json', 'dist'])
      cpSync(join(ROOT, part), join(place, part), { recursive: true });
  });
}

function install(fill: (place: string) => void, without: readonly string[] = []): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-packed-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', type: 'module' }));
  fill(join(modules, 'toolwright'));
  for (const name of packageNames().filter((one) => !without.includes(one))) link(name, modules);
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
  // Under npm scripts this is the npm that runs them; a shell is what Windows needs for the bare name.
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
