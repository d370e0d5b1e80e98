// Which test file passes which mutants, measured once for each test file and kept until it or a source changes.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runTests } from './mutated-tree.mjs';

/** Tests of built code, of compilers and of other processes: no mutant is active there. */
const ELSEWHERE = /child_process|Stdio|-process\.js|-programs?\.js|run-command|compilers\.js|run-compiler/;

/** After so many test files what was seen is written down. */
const AT_ONCE = 40;

/** Test file → `{ ms, ids }`; a test file that fails without any mutant is left out, and told. */
export async function readPassed({ folder, testFiles, sourceHash, cachePath }) {
  const kept = existsSync(cachePath) ? JSON.parse(readFileSync(cachePath, 'utf8')) : {};
  const passed = {};
  const missing = [];
  for (const path of testFiles) {
    const text = readFileSync(join(folder, path), 'utf8');
    if (ELSEWHERE.test(text)) continue;
    const hash = createHash('sha1').update(`${sourceHash}\n${text}`).digest('hex');
    if (kept[path]?.hash === hash) passed[path] = kept[path];
    else missing.push({ path, hash });
  }
  if (missing.length > 0) {
    console.log(`Seeing which mutants ${missing.length} test files pass …`);
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      Object.assign(passed, await measure(folder, missing.slice(at, at + AT_ONCE)));
      const sound = Object.entries(passed).filter(([, { isSound }]) => isSound);
      writeFileSync(cachePath, JSON.stringify(Object.fromEntries(sound)));
    }
  }
  const sound = Object.entries(passed).filter(([, { isSound }]) => isSound);
  return new Map(sound.map(([path, { ms, ids }]) => [path, { ms, ids: new Set(ids) }]));
}

async function measure(folder, missing) {
  const tests = missing.map(({ path }) => path);
  const { seen, unsound } = await watch(folder, tests, []);
  // A busy machine makes tests fail that wait for something; alone they have another chance.
  const failing = unsound.size === 0 ? unsound : (await watch(folder, [...unsound], ['-i'])).unsound;
  for (const path of failing) console.log(`  left out, as it fails without a mutant: ${path}`);
  const note = (path) => seen.get(path) ?? { ms: 0, ids: [] };
  return Object.fromEntries(
    missing.map(({ path, hash }) => [path, { hash, ...note(path), isSound: !failing.has(path) }]),
  );
}

async function watch(folder, tests, flags) {
  const [notes, report] = [join(folder, '.passed.jsonl'), join(folder, '.report.json')];
  await runTests(folder, {
    tests,
    flags: [...flags, '--json', '--outputFile', report],
    env: { TOOLWRIGHT_PASSED: notes },
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
    seen: new Map(lines.map(({ testPath, ms, ids }) => [relative(folder, testPath), { ms, ids }])),
    unsound: new Set(failed.map(({ name }) => relative(folder, name))),
  };
}

function relative(folder, path) {
  return path.slice(path.indexOf(folder) + folder.length + 1);
}
