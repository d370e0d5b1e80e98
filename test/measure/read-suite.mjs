import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Reads the rows of a suite from the folder in the first argument or in TOOLWRIGHT_SUITES. The suites are not part of
 * the repository: if the file does not exist, this prints a line and exits with code 0.
 */
export function readSuite(name) {
  const file = join(process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.', name);
  if (!existsSync(file)) {
    console.log(`${file} does not exist; nothing was measured.`);
    process.exit(0);
  }
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}
