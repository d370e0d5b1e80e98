// Measures which mutants each test file executes, and caches the result until the test file changes.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runTests } from './mutated-tree.mjs';

/** Tests that use built code, compilers or child processes, in which no mutant is active. */
const WITHOUT_MUTANTS =
  /child_process|Stdio|-process\.js|-programs?\.js|\/processes\/|run-command|compilers\.js|run-compiler/;

/** Tests of running time, which take minutes. */
const TIMING_TESTS = /\/linear-/;

/** The cache is written after each batch of test files. */
const BATCH = 40;

/**
 * Returns test file → `{ ms, ids, countIn }`, where `countIn(source)` is the number of mutants of a source that the
 * file executes. Files that fail without a mutant are skipped. If a source has changed since (`hashes`), a file that
 * executed any of its mutants is assumed to execute all of them.
 */
export async function readCoverage({ folder, testFiles, mutants, hashes, cachePath }) {
  const cached = existsSync(cachePath) ? JSON.parse(readFileSync(cachePath, 'utf8')) : {};
  const coverage = {};
  const unmeasured = [];
  for (const path of testFiles) {
    const text = readFileSync(join(folder, path), 'utf8');
    if (WITHOUT_MUTANTS.test(text) || TIMING_TESTS.test(path)) continue;
    const hash = createHash('sha1').update(text).digest('hex');
    if (cached[path]?.hash === hash) coverage[path] = cached[path];
    else unmeasured.push({ path, hash });
  }
  if (unmeasured.length > 0) {
    console.log(`Measuring which mutants ${unmeasured.length} test files execute …`);
    for (let at = 0; at < unmeasured.length; at += BATCH) {
      const measured = await measure(folder, unmeasured.slice(at, at + BATCH));
      for (const [path, { ids, ...more }] of Object.entries(measured))
        coverage[path] = { ...more, files: offsetsByFile(ids, { mutants, hashes }) };
      const stable = Object.entries(coverage).filter(([, { isStable }]) => isStable);
      writeFileSync(cachePath, JSON.stringify(Object.fromEntries(stable)));
    }
  }
  const stable = Object.entries(coverage).filter(([, { isStable }]) => isStable);
  const measuredSources = new Set(stable.flatMap(([, { files }]) => Object.keys(files)));
  return new Map(
    stable.map(([path, { ms, files }]) => [
      path,
      {
        ms,
        ids: executedIds(files, { mutants, hashes, measuredSources }),
        countIn: (source) => countIn(files, source),
      },
    ]),
  );
}

/** Source file → its hash and the offsets of the executed mutants, counted from the first mutant of the file. */
function offsetsByFile(ids, { mutants, hashes }) {
  const files = {};
  for (const id of ids) {
    const { path, siblings } = mutants[id];
    files[path] ??= { hash: hashes.get(path), offsets: [] };
    files[path].offsets.push(id - siblings[0]);
  }
  return files;
}

/** For a new source, estimated from the other files of its folder. */
function countIn(files, source) {
  if (files[source] !== undefined) return files[source].offsets.length;
  const near = Object.entries(files).filter(([path]) => dirname(path) === dirname(source));
  return near.reduce((sum, [, { offsets }]) => sum + offsets.length, 0) / 10;
}

/** A test file is assumed to execute a new source if it executes other files of the same folder. */
function executedIds(files, { mutants, hashes, measuredSources }) {
  const folders = new Set(Object.keys(files).map(dirname));
  const isExecuted = ({ id, path, siblings }) => {
    const file = files[path];
    if (file === undefined) return !measuredSources.has(path) && folders.has(dirname(path));
    return file.hash !== hashes.get(path) || file.offsets.includes(id - siblings[0]);
  };
  return new Set(mutants.filter(isExecuted).map(({ id }) => id));
}

async function measure(folder, unmeasured) {
  const tests = unmeasured.map(({ path }) => path);
  const { covered, failed } = await runWithCoverage(folder, tests, []);
  // Tests with time limits can fail on a busy machine, so failed tests are repeated one after another.
  const failing = failed.size === 0 ? failed : (await runWithCoverage(folder, [...failed], ['-i'])).failed;
  for (const path of failing) console.log(`  skipped because it fails without a mutant: ${path}`);
  const note = (path) => covered.get(path) ?? { ms: 0, ids: [] };
  return Object.fromEntries(
    unmeasured.map(({ path, hash }) => [path, { hash, ...note(path), isStable: !failing.has(path) }]),
  );
}

async function runWithCoverage(folder, tests, flags) {
  const [notes, report] = [join(folder, '.covered.jsonl'), join(folder, '.report.json')];
  await runTests(folder, {
    tests,
    flags: [...flags, '--json', '--outputFile', report],
    env: { TOOLWRIGHT_COVERED: notes },
    limitMs: 3_600_000,
  });
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const failed = testResults.filter(({ status }) => status !== 'passed');
  const lines = readFileSync(notes, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  rmSync(notes);
  return {
    covered: new Map(lines.map(({ testPath, ms, ids }) => [relative(folder, testPath), { ms, ids }])),
    failed: new Set(failed.map(({ name }) => relative(folder, name))),
  };
}

function relative(folder, path) {
  return path.slice(path.indexOf(folder) + folder.length + 1);
}
