// Which test file passes which mutants, measured once for each test file and kept until it changes.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runTests } from './mutated-tree.mjs';

/** Tests of built code, of compilers and of other processes: no mutant is active there. */
const ELSEWHERE =
  /child_process|Stdio|-process\.js|-programs?\.js|\/processes\/|run-command|compilers\.js|run-compiler/;

/** Tests of how much longer twice as much takes: they take minutes. */
const ABOUT_SPEED = /\/linear-/;

/** After so many test files what was seen is written down. */
const AT_ONCE = 40;

/**
 * Test file → `{ ms, ids, shareOf }`; `shareOf` says of how many mutants of a source it is known. A test file that fails without any mutant is left out, and told. Where a source
 * has changed since (`hashes`), what passed any of its mutants is believed to pass them all.
 */
export async function readPassed({ folder, testFiles, mutants, hashes, cachePath }) {
  const kept = existsSync(cachePath) ? JSON.parse(readFileSync(cachePath, 'utf8')) : {};
  const passed = {};
  const missing = [];
  for (const path of testFiles) {
    const text = readFileSync(join(folder, path), 'utf8');
    if (ELSEWHERE.test(text) || ABOUT_SPEED.test(path)) continue;
    const hash = createHash('sha1').update(text).digest('hex');
    if (kept[path]?.hash === hash) passed[path] = kept[path];
    else missing.push({ path, hash });
  }
  if (missing.length > 0) {
    console.log(`Seeing which mutants ${missing.length} test files pass …`);
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      const measured = await measure(folder, missing.slice(at, at + AT_ONCE));
      for (const [path, { ids, ...more }] of Object.entries(measured))
        passed[path] = { ...more, files: placesOf(ids, { mutants, hashes }) };
      const sound = Object.entries(passed).filter(([, { isSound }]) => isSound);
      writeFileSync(cachePath, JSON.stringify(Object.fromEntries(sound)));
    }
  }
  const sound = Object.entries(passed).filter(([, { isSound }]) => isSound);
  const known = new Set(sound.flatMap(([, { files }]) => Object.keys(files)));
  return new Map(
    sound.map(([path, { ms, files }]) => [
      path,
      { ms, ids: idsOf(files, { mutants, hashes, known }), shareOf: (source) => shareOf(files, source) },
    ]),
  );
}

/** Source file → its hash and the places of mutants among those of the file. */
function placesOf(ids, { mutants, hashes }) {
  const files = {};
  for (const id of ids) {
    const { path, fellows } = mutants[id];
    files[path] ??= { hash: hashes.get(path), places: [] };
    files[path].places.push(id - fellows[0]);
  }
  return files;
}

/** Of a source that nobody knew, as of its folder. */
function shareOf(files, source) {
  if (files[source] !== undefined) return files[source].places.length;
  const near = Object.entries(files).filter(([path]) => dirname(path) === dirname(source));
  return near.reduce((sum, [, { places }]) => sum + places.length, 0) / 10;
}

/** A source that nobody knew is believed to be passed by what passes others of its folder. */
function idsOf(files, { mutants, hashes, known }) {
  const folders = new Set(Object.keys(files).map(dirname));
  const passes = ({ id, path, fellows }) => {
    const file = files[path];
    if (file === undefined) return !known.has(path) && folders.has(dirname(path));
    return file.hash !== hashes.get(path) || file.places.includes(id - fellows[0]);
  };
  return new Set(mutants.filter(passes).map(({ id }) => id));
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
