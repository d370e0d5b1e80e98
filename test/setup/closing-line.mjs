// A Jest reporter: the last line of a run is `N passed, N failed`, with `, N skipped` behind it where there are any.
import { writeSync } from 'node:fs';

/** The counts of a run. A file that could not be run is a failure, although no test of it failed. */
export function closingLine({
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

// Jest demands a default export.
export default class ClosingLine {
  #isJson;

  constructor({ json }) {
    this.#isJson = json;
  }

  onRunComplete(_contexts, results) {
    if (this.#isJson) return;
    // Jest's own summary comes after all reporters, and complaints about open handles after that.
    process.once('exit', () => writeSync(1, `${closingLine(results)}\n`));
  }

  getLastError() {}
}
