/*
 * Prepares the benchmark: installs the peers, copies the built package (so that a later build does not change the
 * results), and generates and compiles the classes.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeDecoratedTools, writeZodTools } from './generate-tools.mjs';

const FOLDER = import.meta.dirname;
const ROOT = join(FOLDER, '..', '..');
const BUILD = join(FOLDER, '.build');
const COUNTS = [1_000, 10_000];

/** Returns the path of the compiled module with `count` generated tools of a framework. */
export function generatedFile(framework, count) {
  return framework === 'toolwright'
    ? join(BUILD, 'classes', `generated-${count}.js`)
    : join(BUILD, 'zod', `generated-${count}.mjs`);
}

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
    execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: FOLDER, stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    throw new Error(
      `The peers could not be installed. Is the package registry reachable? ${firstError(error)}\n` +
        'Run `npm ci --ignore-scripts` in test/bench for details.',
    );
  }
}

/** npm writes its hidden lock file last; if it is older than package-lock.json, other versions are installed. */
function isInstalled() {
  const installed = statSync(join(FOLDER, 'node_modules', '.package-lock.json'), { throwIfNoEntry: false });
  return installed !== undefined && installed.mtimeMs >= statSync(join(FOLDER, 'package-lock.json')).mtimeMs;
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
    throw new Error('The package is not built; run `npm run build` first.');
  mkdirSync(BUILD, { recursive: true });
  cpSync(dist, join(BUILD, 'dist'), { recursive: true });
}

function generate() {
  for (const count of COUNTS) {
    writeDecoratedTools(join(BUILD, 'sources', `generated-${count}.ts`), count);
    writeZodTools(generatedFile('ai-sdk', count), count);
  }
}

function compile() {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  for (const project of ['tsconfig.json', 'tsconfig.generated.json']) {
    execFileSync(process.execPath, [compiler, '-p', join(FOLDER, project)], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  }
  // Other tools that search the repository should not read thousands of generated classes.
  rmSync(join(BUILD, 'sources'), { recursive: true });
}
