import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TESTS = join(ROOT, 'test');
const SOURCES = [join(ROOT, 'src/'), join(ROOT, 'decorators/')];

/** Files that import the test files that need the same long preparation, which so takes place once. */
const GROUPS = ['test/structure/over-all-sources.ts', 'test/parts/typegen/by-every-compiler.ts'];

/** All test files, relative to the root: `sources` import source files by path, `built` import only entry points. */
export function testFiles() {
  const opens = new Map();
  const grouped = new Set(GROUPS.flatMap((path) => importedBy(join(ROOT, path))));
  const files = readdirSync(TESTS, { recursive: true })
    .filter((path) => path.endsWith('.test.ts') && !/node_modules|^long\b/.test(path))
    .map((path) => join(TESTS, path))
    .filter((file) => !grouped.has(file))
    .concat(GROUPS.map((path) => join(ROOT, path)));
  const fromRoot = (file) => relative(ROOT, file).replaceAll('\\', '/');
  return {
    built: files.filter((file) => !opensSources(file, opens)).map(fromRoot),
    sources: files.filter((file) => opensSources(file, opens)).map(fromRoot),
  };
}

/** Whether a file imports sources by their paths. What is being asked already is not asked again. */
function opensSources(file, opens) {
  if (opens.has(file)) return opens.get(file);
  opens.set(file, false);
  const found = SOURCES.some((folder) => file.startsWith(folder)) || importsSources(file, opens);
  opens.set(file, found);
  return found;
}

function importsSources(file, opens) {
  return importedBy(file).some((imported) => opensSources(imported, opens));
}

/** The files that a file names in its imports. */
function importedBy(file) {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g)]
    .map(([, specifier]) => sourceOf(resolve(dirname(file), specifier)))
    .filter(existsSync);
}

/** What an import of `….js` opens: the TypeScript of that name, unless it is JavaScript itself. */
function sourceOf(path) {
  const source = path.replace(/\.(c?)js$/, '.$1ts');
  return existsSync(source) ? source : path;
}
