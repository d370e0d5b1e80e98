import { expect, test } from '@jest/globals';

const { summaryLine } = (await import('./summary-line.mjs' as string)) as {
  summaryLine(counts: Readonly<Record<string, number>>): string;
};

const NO_TESTS = {
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
  // A file that cannot be loaded has no tests that could fail.
  [{ numPassedTests: 12, numFailedTests: 1, numRuntimeErrorTestSuites: 1 }, '12 passed, 2 failed'],
])('a run with %j ends with the line "%s"', (counts, line) => {
  expect(summaryLine({ ...NO_TESTS, ...counts })).toBe(line);
});
