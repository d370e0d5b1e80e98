import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const HERE = import.meta.dirname;
export const ROOT = join(HERE, '..', '..');

/** Creates a project with the packed package in `node_modules`, and compiles it as ESM and as CommonJS. */
export function prepare(base) {
  install();
  const folder = join(base, 'project');
  if (!existsSync(join(ROOT, 'dist', 'src', 'index.js')))
    throw new Error('dist is missing: run `npm run build` first.');
  cpSync(join(HERE, 'project'), folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "name": "app", "type": "module" }');
  installPackage(folder);
  compile(folder, 'esm', ['--module', 'NodeNext']);
  compile(folder, 'cjs', ['--module', 'CommonJS', '--moduleResolution', 'bundler']);
  writeFileSync(join(folder, 'cjs', 'package.json'), '{ "type": "commonjs" }');
  return { project: folder, alone: join(base, 'alone') };
}

function install() {
  const installed = statSync(join(HERE, 'node_modules', '.package-lock.json'), { throwIfNoEntry: false });
  // npm writes this file last. If it is older than package-lock.json, the installed versions may be outdated.
  if (installed && installed.mtimeMs >= statSync(join(HERE, 'package-lock.json')).mtimeMs) return;
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: 'inherit' });
}

/** Installs the packed package, and links to the packages of the repository. */
function installPackage(folder) {
  const modules = join(folder, 'node_modules');
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
  const tarball = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n').at(-1);
  execFileSync('tar', ['-xzf', tarball], { cwd: folder });
  mkdirSync(modules);
  cpSync(join(folder, 'package'), join(modules, 'toolwright'), { recursive: true });
  const source = join(ROOT, 'node_modules');
  for (const name of readdirSync(source).filter((entry) => !entry.startsWith('.'))) {
    const names = name.startsWith('@')
      ? readdirSync(join(source, name)).map((part) => `${name}/${part}`)
      : [name];
    for (const linked of names) link(join(source, linked), join(modules, linked));
  }
}

function link(target, path) {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, 'junction');
}

function compile(folder, out, flags) {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  execFileSync(process.execPath, [compiler, '-p', folder, '--outDir', join(folder, out), ...flags], {
    stdio: 'inherit',
  });
}
