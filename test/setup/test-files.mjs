import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TESTS = join(ROOT, 'test');
const SOURCES = [join(ROOT, 'src/'), join(ROOT, 'decorators/')];

/** Files that import several test files, so that their long preparation runs only once. */
const GROUPS = ['test/structure/source-rules.ts', 'test/parts/typegen/by-every-compiler.ts'];

/** All test files, relative to the root: `sources` import source files by path, `built` import only entry points. */
export function testFiles() {
  const results = new Map();
  const grouped = new Set(GROUPS.flatMap((path) => importedBy(join(ROOT, path))));
  const files = readdirSync(TESTS, { recursive: true })
    .filter((path) => path.endsWith('.test.ts') && !/node_modules|^long\b/.test(path))
    .map((path) => join(TESTS, path))
    .filter((file) => !grouped.has(file))
    .concat(GROUPS.map((path) => join(ROOT, path)));
  const fromRoot = (file) => relative(ROOT, file).replaceAll('\\', '/');
  return {
    built: files.filter((file) => !usesSources(file, results)).map(fromRoot),
    sources: files.filter((file) => usesSources(file, results)).map(fromRoot),
  };
}

/** Whether a file imports sources by path, directly or not. Cyclic imports count as `false` until they are resolved. */
function usesSources(file, results) {
  if (results.has(file)) return results.get(file);
  results.set(file, false);
  const found = SOURCES.some((folder) => file.startsWith(folder)) || importsSources(file, results);
  results.set(file, found);
  return found;
}

function importsSources(file, results) {
  return importedBy(file).some((imported) => usesSources(imported, results));
}

/** The existing files that a file imports by relative path. */
function importedBy(file) {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g)]
    .map(([, specifier]) => sourceOf(resolve(dirname(file), specifier)))
    .filter(existsSync);
}

/** An import of `….js` loads the TypeScript file of that name if it exists. */
function sourceOf(path) {
  const source = path.replace(/\.(c?)js$/, '.$1ts');
  return existsSync(source) ? source : path;
}
