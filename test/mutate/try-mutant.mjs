import { dirname } from 'node:path';
import { runTests } from './mutated-tree.mjs';

/** Test files of a run: few at first, as most mutants are found by the tests of their own room; the rest at last. */
const STEPS = [5, 15, 20];

const SOON = STEPS.reduce((sum, step) => sum + step);

/** Of the rest, those that take longer are left out. */
const MOST_MS = 15_000;

/** `found`, `timeout`, `survived`, or `unseen` where no test ever gets there. `finder` found it an earlier time. */
export async function tryMutant({ folder, mutant, passed, finder }) {
  let tests = testsOf({ mutant, passed, finder });
  if (tests.length === 0) return { status: 'unseen' };
  const count = tests.length;
  for (let step = 0; tests.length > 0; step += 1) {
    const some = tests.slice(0, STEPS[step] ?? tests.length);
    const outcome = await run(folder, some, mutant.id);
    if (outcome.status === 'timeout') return { status: 'timeout' };
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
    limitMs: 30_000 + 4 * tests.reduce((sum, { ms }) => sum + ms + 500, 0),
  });
}

/** Whether a test passes without any mutant. A test of the mutant's own room is believed at once. */
async function passes(folder, tests, by) {
  const test = tests.find(({ path }) => path === by);
  return test === undefined || test.isNear || (await run(folder, [test], -1)).status === 'passed';
}

/** What found it before, those of the mutant's own room, then those that pass most of its file. */
function testsOf({ mutant, passed, finder }) {
  const room = dirname(mutant.path).replace(/^src\//, 'test/rooms/');
  return [...passed]
    .filter(([, { ids }]) => ids.has(mutant.id))
    .map(([path, { ms, ids }]) => ({
      path,
      ms,
      isNear: path.startsWith(`${room}/`),
      share: mutant.fellows.filter((id) => ids.has(id)).length,
    }))
    .sort(
      (a, b) =>
        Number(b.path === finder) - Number(a.path === finder) ||
        Number(b.isNear) - Number(a.isNear) ||
        b.share - a.share ||
        a.ms - b.ms,
    )
    .filter(({ ms }, index) => index < SOON || ms <= MOST_MS);
}
