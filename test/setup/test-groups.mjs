import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isLong } from './longest-first.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Where the groups are, from the root. */
export const GROUPS = 'dist/test-groups';

const MOST_FILES = 25;

/** What changes the modules or the clock for all of its context, and what `require` cannot load. */
const ALONE = /\bjest\.(?:use|mock|unstable|setSystem)|^(?:(?:export )?(?:const|let) .*)?\bawait\b/m;

/** Their results tell of all classes that are loaded, or of all that a container of the process was told. */
const OF_ALL_CLASSES = [
  'test/flow/declaration-warnings.test.ts',
  'test/flow/injecting.test.ts',
  'test/parts/cli/',
  'test/parts/nestjs/forgotten-classes.test.ts',
  'test/parts/nestjs/inspector.test.ts',
];

/**
 * Writes files that each run many test files in one context, since making a context and loading the package into it
 * takes longer than most files' tests. Gives the paths to run, from the root: the groups, and the files that are alone.
 */
export function groupTests(files, name) {
  const folder = join(ROOT, GROUPS, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const grouped = files.filter((file) => !isAlone(file)).sort();
  const groups = Math.ceil(grouped.length / MOST_FILES);
  for (let group = 0; group < groups; group += 1) {
    const members = grouped.slice(
      Math.floor((group * grouped.length) / groups),
      Math.floor(((group + 1) * grouped.length) / groups),
    );
    writeFileSync(join(folder, `${group + 1}.mjs`), groupOf(members));
  }
  return [
    ...files.filter(isAlone),
    ...Array.from({ length: groups }, (_, group) => `${GROUPS}/${name}/${group + 1}.mjs`),
  ];
}

function isAlone(file) {
  if (isLong(file) || OF_ALL_CLASSES.some((path) => file.startsWith(path))) return true;
  return ALONE.test(readFileSync(join(ROOT, file), 'utf8'));
}

/** Hooks of a file are those of its own tests: each file has a block of its own, of its name. */
function groupOf(files) {
  const blocks = files.map((file) => `describe('${file}', () => load('../../../${file}'));`);
  return [
    "import { createRequire } from 'node:module';",
    "import { describe } from '@jest/globals';",
    'const load = (file) => void require(file);',
    'const require = createRequire(import.meta.url);',
    ...blocks,
    '',
  ].join('\n');
}
