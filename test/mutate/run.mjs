// Mutation tests of the central parts. Fails if the tests find fewer than 92 % of the mutants. Results are cached;
// --again repeats mutants that were not found, --fresh deletes the cache.
//   npm run mutate -- [--limit 600] [--parts call,loop] [--jobs 2] [--again] [--fresh]
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { EQUIVALENT } from './equivalent-mutants.mjs';
import { readCoverage } from './mutant-coverage.mjs';
import { copyTree, findMutants, stopTests } from './mutated-tree.mjs';
import { sampleMutants } from './sample-mutants.mjs';
import { tryMutant } from './try-mutant.mjs';

const PARTS = {
  call: ['src/run/call'],
  loop: ['src/run/loop'],
  checking: ['src/tools/checking'],
  inspector: ['src/surfaces/inspector'],
};
const REQUIRED = 0.92;
const RESULT_FOLDER = fileURLToPath(new URL('.results', import.meta.url));
const RESULT_FILE = `${RESULT_FOLDER}/results.jsonl`;

const { values: options } = parseArgs({
  options: {
    limit: { type: 'string', default: '600' },
    parts: { type: 'string', default: Object.keys(PARTS).join(',') },
    jobs: { type: 'string', default: '2' },
    again: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
  },
});
const parts = options.parts.split(',');
const unknown = parts.filter((part) => !Object.hasOwn(PARTS, part));
if (unknown.length > 0)
  throw new Error(`Unknown part '${unknown}'. The parts are ${Object.keys(PARTS).join(', ')}.`);
if (options.fresh) rmSync(RESULT_FOLDER, { recursive: true, force: true });
mkdirSync(RESULT_FOLDER, { recursive: true });

const { mutants, texts } = findMutants(PARTS);
const hashes = new Map(
  [...texts].map(([path, text]) => [path, sha1(text.replace(/__mutant\?\.\(\d+\)/g, ''))]),
);
const sampled = sampleMutants(mutants, { parts, limit: Number(options.limit) });
const results = readResults();
// By rank over all parts, so that an interrupted run has tried the sample of a smaller limit.
const open = sampled.filter((mutant) => !hasResult(mutant)).sort((a, b) => a.rank - b.rank);
console.log(
  `${mutants.length} mutants; ${sampled.length} sampled, ${sampled.length - open.length} of them tried before`,
);
if (open.length > 0) await tryMutants(open);
process.exitCode = summarise() >= REQUIRED ? 0 : 1;

async function tryMutants(queuedMutants) {
  const tree = copyTree(texts);
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      stopTests();
      tree.remove();
      process.exit(1);
    });
  try {
    const coverage = await readCoverage({
      folder: tree.folder,
      testFiles: tree.testFiles,
      mutants,
      hashes,
      cachePath: `${RESULT_FOLDER}/coverage.json`,
    });
    let count = 0;
    const queue = queuedMutants.values();
    const work = async () => {
      for (const mutant of queue) {
        const startedAt = Date.now();
        const previous = results.get(mutant.key);
        const outcome = await tryMutant({ folder: tree.folder, mutant, coverage, previous });
        saveResult({
          key: mutant.key,
          hash: hashes.get(mutant.path),
          ...outcome,
          ms: Date.now() - startedAt,
        });
        count += 1;
        console.log(`${count}/${queuedMutants.length} ${outcome.status.padEnd(9)} ${describe(mutant)}`);
      }
    };
    await Promise.all(Array.from({ length: Number(options.jobs) }, work));
  } finally {
    tree.remove();
  }
}

function readResults() {
  const lines = existsSync(RESULT_FILE) ? readFileSync(RESULT_FILE, 'utf8').trim().split('\n') : [];
  return new Map(lines.filter(Boolean).map((line) => [JSON.parse(line).key, JSON.parse(line)]));
}

function saveResult(outcome) {
  results.set(outcome.key, outcome);
  appendFileSync(RESULT_FILE, `${JSON.stringify(outcome)}\n`);
}

/** With `--again`, mutants that were not found have no result: new tests may find them. */
function hasResult(mutant) {
  const outcome = results.get(mutant.key);
  if (outcome === undefined || outcome.hash !== hashes.get(mutant.path)) return false;
  return !options.again || isFound(outcome) || isEquivalent(mutant);
}

function isFound({ status }) {
  return status === 'found' || status === 'timeout';
}

function isEquivalent({ path, source, to }) {
  return EQUIVALENT.some((known) => known.path === path && known.source === source && known.to === to);
}

/** Prints the mutants that were not found and the score of each part; returns the total score. */
function summarise() {
  const rows = parts.map((part) => {
    const counted = sampled.filter((mutant) => mutant.part === part && !isEquivalent(mutant));
    const missed = counted.filter((mutant) => !isFound(results.get(mutant.key)));
    return { part, counted, missed };
  });
  for (const mutant of rows.flatMap(({ missed }) => missed))
    console.log(`${results.get(mutant.key).status.padEnd(9)} ${describe(mutant)}`);
  for (const { part, counted, missed } of rows)
    console.log(`${part.padEnd(9)} ${counted.length - missed.length} of ${counted.length} found`);
  const counted = rows.flatMap((row) => row.counted);
  const missed = rows.flatMap((row) => row.missed);
  const rate = counted.length === 0 ? 1 : 1 - missed.length / counted.length;
  const equivalent = sampled.length - counted.length;
  console.log(`all       ${(rate * 100).toFixed(1)} % found; ${equivalent} more are equivalent`);
  return rate;
}

function describe({ path, line, kind, from, to }) {
  const short = (text) => (text.length > 60 ? `${text.slice(0, 57)}…` : text).replace(/\s+/g, ' ');
  return `${path}:${line}  ${kind}: ${short(from)} → ${short(to)}`;
}

function sha1(text) {
  return createHash('sha1').update(text).digest('hex');
}
