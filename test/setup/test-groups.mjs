import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isLong } from './longest-first.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The folder of the groups, relative to the root. */
export const GROUPS = 'dist/test-groups';

const MAX_FILES = 25;

/** Files that change modules or the clock of their whole context, and files that `require` cannot load. */
const NEEDS_OWN_CONTEXT =
  /\bjest\.(?:use|mock|unstable|setSystem)|^(?:(?:export )?(?:const|let) .*)?\bawait\b/m;

/** Their results depend on all loaded classes, or on all registrations in a container of the process. */
const READS_ALL_CLASSES = [
  'test/flow/declaration-warnings.test.ts',
  'test/flow/injecting.test.ts',
  'test/parts/cli/',
  'test/parts/nestjs/forgotten-classes.test.ts',
  'test/parts/nestjs/inspector.test.ts',
];

/**
 * Writes files that each run many test files in one context, because creating a context and loading the package takes
 * longer than most tests. Returns the paths to run, relative to the root: the groups and the ungrouped files.
 */
export function groupTests(files, name) {
  const folder = join(ROOT, GROUPS, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const grouped = files.filter((file) => !runsAlone(file)).sort();
  const groups = Math.ceil(grouped.length / MAX_FILES);
  for (let group = 0; group < groups; group += 1) {
    const members = grouped.slice(
      Math.floor((group * grouped.length) / groups),
      Math.floor(((group + 1) * grouped.length) / groups),
    );
    writeFileSync(join(folder, `${group + 1}.mjs`), groupCode(members));
  }
  return [
    ...files.filter(runsAlone),
    ...Array.from({ length: groups }, (_, group) => `${GROUPS}/${name}/${group + 1}.mjs`),
  ];
}

function runsAlone(file) {
  if (isLong(file) || READS_ALL_CLASSES.some((path) => file.startsWith(path))) return true;
  return NEEDS_OWN_CONTEXT.test(readFileSync(join(ROOT, file), 'utf8'));
}

/** Each file gets its own `describe`, so that its hooks apply only to its own tests. */
function groupCode(files) {
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
