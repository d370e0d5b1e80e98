import { dirname } from 'node:path';
import { runTests } from './mutated-tree.mjs';

/** Test files of a run: few at first, as most mutants are found by the tests of their own room. */
const STEPS = [3, 12, 25];

/** What so many do not find has survived; all others are asked only where it is tried again. */
const MOST_TESTS = STEPS.reduce((sum, step) => sum + step);

/** Test files that take longer are left out: they are about speed, or random through and through. */
const MOST_MS = 15_000;

/**
 * `found`, `timeout`, `survived`, or `unseen` where no test ever gets there. `before` is what came of it an
 * earlier time.
 */
export async function tryMutant({ folder, mutant, passed, before }) {
  const all = testsOf({ mutant, passed, finder: before?.by });
  let tests = before?.status === 'survived' ? all : all.slice(0, MOST_TESTS);
  if (tests.length === 0) return { status: 'unseen' };
  const count = tests.length;
  for (let step = 0; tests.length > 0; step += 1) {
    const some = tests.slice(0, STEPS[step] ?? tests.length);
    const outcome = await run(folder, some, mutant.id);
    if (outcome.status === 'timeout' && (await run(folder, some, -1)).status !== 'timeout')
      return { status: 'timeout' };
    const { by } = outcome;
    if (by !== undefined && (await passes(folder, some, by))) return { status: 'found', by };
    // A test that fails without the mutant as well has found nothing; the others of its step are still to run.
    tests = by === undefined ? tests.slice(some.length) : tests.filter(({ path }) => path !== by);
  }
  return { status: 'survived', tests: count };
}

function run(folder, tests, mutant) {
  return runTests(folder, {
    tests: tests.map(({ path }) => path),
    flags: ['-i', '--bail'],
    env: { TOOLWRIGHT_MUTANT: String(mutant) },
    limitMs: 15_000 + 4 * tests.reduce((sum, { ms }) => sum + ms + 500, 0),
  });
}

/** Whether a test passes without any mutant. A test of the mutant's own room is believed at once. */
async function passes(folder, tests, by) {
  const test = tests.find(({ path }) => path === by);
  return test === undefined || test.isNear || (await run(folder, [test], -1)).status === 'passed';
}

/** What found it before, then what tells most in its time: of the mutant's own room, and most of its file. */
function testsOf({ mutant, passed, finder }) {
  const room = dirname(mutant.path).replace(/^src\//, 'test/parts/');
  return [...passed]
    .filter(([path, { ms, ids }]) => ids.has(mutant.id) && (ms <= MOST_MS || path === finder))
    .map(([path, { ms, shareOf }]) => {
      const isNear = path.startsWith(`${room}/`);
      const share = (isNear ? 3 : 1) * shareOf(mutant.path);
      const worth = path === finder ? Number.POSITIVE_INFINITY : share / (ms + 500);
      return { path, ms, isNear, worth };
    })
    .sort((a, b) => b.worth - a.worth);
}
