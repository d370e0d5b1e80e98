// `npm run mutate`: changes the rooms that everything hangs on, one place at a time, and sees whether a test
// notices. Fails where fewer than 92 % are found. What was tried is kept and not tried again.
//   npm run mutate -- [--limit 600] [--rooms call,loop] [--jobs 2] [--again] [--fresh]
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { drawMutants } from './draw-mutants.mjs';
import { EQUIVALENT } from './equivalent.mjs';
import { copyTree, findMutants, stopTests } from './mutated-tree.mjs';
import { readPassed } from './passed-mutants.mjs';
import { tryMutant } from './try-mutant.mjs';

const ROOMS = {
  call: ['src/run/call'],
  loop: ['src/run/loop'],
  checking: ['src/tools/checking'],
  inspector: ['src/surfaces/inspector'],
};
const REQUIRED = 0.92;
const RESULTS = fileURLToPath(new URL('.results', import.meta.url));
const TRIED = `${RESULTS}/tried.jsonl`;

const { values: options } = parseArgs({
  options: {
    limit: { type: 'string', default: '600' },
    rooms: { type: 'string', default: Object.keys(ROOMS).join(',') },
    jobs: { type: 'string', default: '2' },
    again: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
  },
});
const rooms = options.rooms.split(',');
const unknown = rooms.filter((room) => !Object.hasOwn(ROOMS, room));
if (unknown.length > 0) throw new Error(`No room '${unknown}'; there are ${Object.keys(ROOMS).join(', ')}.`);
if (options.fresh) rmSync(RESULTS, { recursive: true, force: true });
mkdirSync(RESULTS, { recursive: true });

const { mutants, texts } = findMutants(ROOMS);
const hashes = new Map(
  [...texts].map(([path, text]) => [path, sha1(text.replace(/__mutant\?\.\(\d+\)/g, ''))]),
);
const drawn = drawMutants(mutants, { rooms, limit: Number(options.limit) });
const tried = readTried();
// By rank over all rooms, so that a run that is broken off has tried what a smaller limit draws.
const open = drawn.filter((mutant) => !isTried(mutant)).sort((a, b) => a.rank - b.rank);
console.log(
  `${mutants.length} mutants; ${drawn.length} drawn, ${drawn.length - open.length} of them tried before`,
);
if (open.length > 0) await tryAll(open);
process.exitCode = summarise() >= REQUIRED ? 0 : 1;

async function tryAll(untried) {
  const tree = copyTree(texts);
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      stopTests();
      tree.remove();
      process.exit(1);
    });
  try {
    const passed = await readPassed({
      folder: tree.folder,
      testFiles: tree.testFiles,
      mutants,
      hashes,
      cachePath: `${RESULTS}/passed.json`,
    });
    let count = 0;
    const queue = untried.values();
    const work = async () => {
      for (const mutant of queue) {
        const began = Date.now();
        const before = tried.get(mutant.key);
        const outcome = await tryMutant({ folder: tree.folder, mutant, passed, before });
        keep({ key: mutant.key, hash: hashes.get(mutant.path), ...outcome, ms: Date.now() - began });
        count += 1;
        console.log(`${count}/${untried.length} ${outcome.status.padEnd(9)} ${describe(mutant)}`);
      }
    };
    await Promise.all(Array.from({ length: Number(options.jobs) }, work));
  } finally {
    tree.remove();
  }
}

function readTried() {
  const lines = existsSync(TRIED) ? readFileSync(TRIED, 'utf8').trim().split('\n') : [];
  return new Map(lines.filter(Boolean).map((line) => [JSON.parse(line).key, JSON.parse(line)]));
}

function keep(outcome) {
  tried.set(outcome.key, outcome);
  appendFileSync(TRIED, `${JSON.stringify(outcome)}\n`);
}

/** With `--again`, what was not found is tried again: there may be tests by now. */
function isTried(mutant) {
  const outcome = tried.get(mutant.key);
  if (outcome === undefined || outcome.hash !== hashes.get(mutant.path)) return false;
  return !options.again || isFound(outcome) || isEquivalent(mutant);
}

function isFound({ status }) {
  return status === 'found' || status === 'timeout';
}

function isEquivalent({ path, source, to }) {
  return EQUIVALENT.some((known) => known.path === path && known.source === source && known.to === to);
}

/** Prints what was not found, and each room’s share; the share of all. */
function summarise() {
  const rows = rooms.map((room) => {
    const counted = drawn.filter((mutant) => mutant.room === room && !isEquivalent(mutant));
    const missed = counted.filter((mutant) => !isFound(tried.get(mutant.key)));
    return { room, counted, missed };
  });
  for (const mutant of rows.flatMap(({ missed }) => missed))
    console.log(`${tried.get(mutant.key).status.padEnd(9)} ${describe(mutant)}`);
  for (const { room, counted, missed } of rows)
    console.log(`${room.padEnd(9)} ${counted.length - missed.length} of ${counted.length} found`);
  const counted = rows.flatMap((row) => row.counted);
  const missed = rows.flatMap((row) => row.missed);
  const rate = counted.length === 0 ? 1 : 1 - missed.length / counted.length;
  const equivalent = drawn.length - counted.length;
  console.log(
    `all       ${(rate * 100).toFixed(1)} % found; ${equivalent} more change nothing that can be seen`,
  );
  return rate;
}

function describe({ path, line, kind, from, to }) {
  const short = (text) => (text.length > 60 ? `${text.slice(0, 57)}…` : text).replace(/\s+/g, ' ');
  return `${path}:${line}  ${kind}: ${short(from)} → ${short(to)}`;
}

function sha1(text) {
  return createHash('sha1').update(text).digest('hex');
}
