import { dirname } from 'node:path';
import { runTests } from './mutated-tree.mjs';

/** Test files in each step: few at first, because the tests of the same part find most mutants. */
const STEPS = [3, 12, 25];

/** The number of test files after which a mutant has survived. Only a repeated trial runs all test files. */
const MAX_TESTS = STEPS.reduce((sum, step) => sum + step);

/** Slower test files are skipped: they measure time or use many random inputs. */
const MAX_MS = 15_000;

/**
 * The status is `found`, `timeout`, `survived`, or `uncovered` if no test executes the mutant. `previous` is the result
 * of an earlier trial.
 */
export async function tryMutant({ folder, mutant, coverage, previous }) {
  const all = testsOf({ mutant, coverage, finder: previous?.by });
  let tests = previous?.status === 'survived' ? all : all.slice(0, MAX_TESTS);
  if (tests.length === 0) return { status: 'uncovered' };
  const count = tests.length;
  for (let step = 0; tests.length > 0; step += 1) {
    const some = tests.slice(0, STEPS[step] ?? tests.length);
    const outcome = await run(folder, some, mutant.id);
    if (outcome.status === 'timeout' && (await run(folder, some, -1)).status !== 'timeout')
      return { status: 'timeout' };
    const { by } = outcome;
    if (by !== undefined && (await passes(folder, some, by))) return { status: 'found', by };
    // If the test also fails without the mutant, continue with the other tests of the step.
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

/** Whether a test passes without a mutant. Tests of the same part are assumed to pass. */
async function passes(folder, tests, by) {
  const test = tests.find(({ path }) => path === by);
  return test === undefined || test.isNear || (await run(folder, [test], -1)).status === 'passed';
}

/** Sorts by priority: first the file that found the mutant before, then the most covered mutants per second. */
function testsOf({ mutant, coverage, finder }) {
  const testFolder = dirname(mutant.path).replace(/^src\//, 'test/parts/');
  return [...coverage]
    .filter(([path, { ms, ids }]) => ids.has(mutant.id) && (ms <= MAX_MS || path === finder))
    .map(([path, { ms, countIn }]) => {
      const isNear = path.startsWith(`${testFolder}/`);
      const count = (isNear ? 3 : 1) * countIn(mutant.path);
      const priority = path === finder ? Number.POSITIVE_INFINITY : count / (ms + 500);
      return { path, ms, isNear, priority };
    })
    .sort((a, b) => b.priority - a.priority);
}
