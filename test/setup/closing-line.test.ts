import { expect, test } from '@jest/globals';

const { closingLine } = (await import('./closing-line.mjs' as string)) as {
  closingLine(counts: Readonly<Record<string, number>>): string;
};

const NONE = {
  numPassedTests: 0,
  numFailedTests: 0,
  numRuntimeErrorTestSuites: 0,
  numPendingTests: 0,
  numTodoTests: 0,
};

test.each([
  [{ numPassedTests: 12 }, '12 passed, 0 failed'],
  [{ numPassedTests: 12, numFailedTests: 3 }, '12 passed, 3 failed'],
  [{ numPassedTests: 12, numPendingTests: 2, numTodoTests: 1 }, '12 passed, 0 failed, 3 skipped'],
  // A file that does not load has no tests that could fail.
  [{ numPassedTests: 12, numFailedTests: 1, numRuntimeErrorTestSuites: 1 }, '12 passed, 2 failed'],
])('a run with %j closes with "%s"', (counts, line) => {
  expect(closingLine({ ...NONE, ...counts })).toBe(line);
});
