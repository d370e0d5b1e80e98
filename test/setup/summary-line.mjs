// A Jest reporter that ends a run with the line `N passed, N failed` and, if tests were skipped, `, N skipped`.
import { writeSync } from 'node:fs';

/** A file that cannot be loaded counts as a failure, although none of its tests failed. */
export function summaryLine({
  numPassedTests,
  numFailedTests,
  numRuntimeErrorTestSuites,
  numPendingTests,
  numTodoTests,
}) {
  const skipped = numPendingTests + numTodoTests;
  const counts = `${numPassedTests} passed, ${numFailedTests + numRuntimeErrorTestSuites} failed`;
  return skipped > 0 ? `${counts}, ${skipped} skipped` : counts;
}

// Jest requires a default export.
export default class SummaryLine {
  #isJson;

  constructor({ json }) {
    this.#isJson = json;
  }

  onRunComplete(_contexts, results) {
    if (this.#isJson) return;
    // Jest prints its own summary and warnings about open handles after all reporters.
    process.once('exit', () => writeSync(1, `${summaryLine(results)}\n`));
  }

  getLastError() {}
}
