import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The rows of a suite from the folder given as argument or in TOOLWRIGHT_SUITES. The suites are not part of
 * the repository: without the file this says so in one line and ends the process well.
 */
export function readSuite(name) {
  const file = join(process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.', name);
  if (!existsSync(file)) {
    console.log(`${file} is not there: nothing measured.`);
    process.exit(0);
  }
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}
