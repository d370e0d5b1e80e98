import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TESTS = join(ROOT, 'test');
const SOURCES = [join(ROOT, 'src/'), join(ROOT, 'decorators/')];

/** The test files that know the package by its doors alone, themselves and whatever they import; from the root. */
export function doorTests() {
  const opens = new Map();
  return readdirSync(TESTS, { recursive: true })
    .filter((path) => path.endsWith('.test.ts') && !path.includes('node_modules'))
    .map((path) => join(TESTS, path))
    .filter((file) => !opensSources(file, opens))
    .map((file) => relative(ROOT, file));
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
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g)]
    .map(([, specifier]) => sourceOf(resolve(dirname(file), specifier)))
    .some((imported) => existsSync(imported) && opensSources(imported, opens));
}

/** What an import of `….js` opens: the TypeScript of that name, unless it is JavaScript itself. */
function sourceOf(path) {
  const source = path.replace(/\.(c?)js$/, '.$1ts');
  return existsSync(source) ? source : path;
}
