/*
 * Makes everything that is measured: installs the peers, takes a copy of the built package (so that a build
 * in the meantime changes nothing), generates and compiles the classes.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeDecoratedTools, writeZodTools } from './generate-tools.mjs';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '..', '..');
const BUILD = join(HERE, '.build');
const COUNTS = [1_000, 10_000];

/** The compiled module with so many generated tools, ours or the AI SDK's. */
export function generatedFile(whose, count) {
  return whose === 'ours'
    ? join(BUILD, 'classes', `generated-${count}.js`)
    : join(BUILD, 'zod', `generated-${count}.mjs`);
}

/** Everything, in order. Throws an error whose message says what to do. */
export function prepare() {
  install();
  rmSync(BUILD, { recursive: true, force: true });
  copyPackage();
  generate();
  compile();
}

function install() {
  if (isInstalled()) return;
  try {
    execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: HERE, stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    throw new Error(
      `The peers could not be installed; is the package registry reachable? ${firstError(error)}\n` +
        'Run `npm ci --ignore-scripts` in test/bench to see more.',
    );
  }
}

/** npm writes its own lock file last; one that is older than ours belongs to other versions. */
function isInstalled() {
  const installed = statSync(join(HERE, 'node_modules', '.package-lock.json'), { throwIfNoEntry: false });
  return installed !== undefined && installed.mtimeMs >= statSync(join(HERE, 'package-lock.json')).mtimeMs;
}

function firstError({ stderr }) {
  return (
    String(stderr ?? '')
      .split('\n')
      .find((line) => line.startsWith('npm error')) ?? ''
  );
}

function copyPackage() {
  const dist = join(ROOT, 'dist');
  if (!existsSync(join(dist, 'src', 'index.js')))
    throw new Error('There is no built package: run `npm run build` first.');
  mkdirSync(BUILD, { recursive: true });
  cpSync(dist, join(BUILD, 'dist'), { recursive: true });
}

function generate() {
  for (const count of COUNTS) {
    writeDecoratedTools(join(BUILD, 'sources', `generated-${count}.ts`), count);
    writeZodTools(generatedFile('ai', count), count);
  }
}

function compile() {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  for (const project of ['tsconfig.json', 'tsconfig.generated.json']) {
    execFileSync(process.execPath, [compiler, '-p', join(HERE, project)], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  }
  // Thousands of classes that no other tool that walks the repository should have to read.
  rmSync(join(BUILD, 'sources'), { recursive: true });
}
