// A copy of the repository whose source contains all mutants at once.
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addMutants } from './mutation-points.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const CONFIG = `import base from './jest.config.js';
export default {
  ...base,
  testTimeout: 60_000,
  workerIdleMemoryLimit: '600MB',
  testEnvironment: '<rootDir>/test/mutate/mutant-environment.mjs',
  setupFilesAfterEnv: ['<rootDir>/test/mutate/mutant-setup.mjs'],
  cacheDirectory: '<rootDir>/.jest',
};
`;

/** Returns `{ id, part, path, kind, line, source, from, to, siblings }` of each mutant; siblings share its file. */
export function findMutants(parts) {
  const mutants = [];
  const texts = new Map();
  for (const [part, folders] of Object.entries(parts)) {
    for (const path of folders.flatMap(sourceFiles)) {
      const added = addMutants(path, readFileSync(join(ROOT, path), 'utf8'), mutants.length);
      texts.set(path, added.text);
      const siblings = added.mutants.map(({ id }) => id);
      mutants.push(...added.mutants.map((mutant) => ({ ...mutant, part, path, siblings })));
    }
  }
  return { mutants, texts };
}

function sourceFiles(folder) {
  try {
    return (
      readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
        .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length))
        // Tests use the built page, which contains no mutants.
        .filter((path) => !path.startsWith('src/surfaces/inspector/page/'))
        .sort()
    );
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

/** Copies the files that are tracked or not ignored, and writes the texts that contain the mutants. */
export function copyTree(texts) {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-mutants-'));
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const paths = listed
    .trim()
    .split('\n')
    .filter((path) => lstatSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile());
  for (const path of paths) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path));
  }
  for (const [path, text] of texts) writeFileSync(join(folder, path), text);
  writeFileSync(join(folder, 'jest.mutants.config.mjs'), CONFIG);
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  // Tests serve the built page of the inspector from there.
  mkdirSync(join(folder, 'dist'));
  symlinkSync(join(ROOT, 'dist/inspector'), join(folder, 'dist/inspector'));
  const testFiles = paths.filter((path) => /^test\/(parts|flow)\/.*\.test\.ts$/.test(path));
  return { folder, testFiles, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

const running = new Set();

/** Kills the process groups of all test runs. */
export function stopTests() {
  for (const { pid } of running) process.kill(-pid, 'SIGKILL');
}

/** Runs tests of the copy. The status is `passed`, `failed` with the first failed test file, or `timeout`. */
export function runTests(folder, { tests, flags, env, limitMs }) {
  const jest = ['--experimental-vm-modules', '--no-warnings', 'node_modules/jest/bin/jest.js'];
  const settings = ['--config', 'jest.mutants.config.mjs', '--watchman=false', '--ci', '--silent'];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...jest, ...settings, ...flags, '--runTestsByPath', ...tests], {
      cwd: folder,
      // A separate process group, so that an endless mutant and its children can be killed.
      detached: true,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    running.add(child);
    let stderr = '';
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      process.kill(-child.pid, 'SIGKILL');
    }, limitMs);
    child.stderr.on('data', (data) => {
      stderr = (stderr + data).slice(-200_000);
    });
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      running.delete(child);
      if (isLate) resolve({ status: 'timeout' });
      else if (code === 0) resolve({ status: 'passed' });
      else resolve({ status: 'failed', by: /^FAIL (\S+)/m.exec(stderr)?.[1] ?? 'jest', stderr });
    });
  });
}
