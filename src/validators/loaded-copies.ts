import { createRequire } from 'node:module';
import { sep } from 'node:path';

const require = createRequire(import.meta.url);

interface Found {
  readonly modules: number;
  readonly copies: readonly unknown[];
}

const found = new Map<string, Found>();

/**
 * The exports of every copy of a CommonJS file that this process has loaded, `class-transformer/cjs/storage.js`
 * for one. Nothing is loaded: metadata exists only where somebody loaded its package, and with a linked or
 * nested installation that may be another copy than the one this package would resolve.
 */
export function loadedCopies(file: string): readonly unknown[] {
  const paths = Object.keys(require.cache);
  const before = found.get(file);
  if (before?.modules === paths.length) return before.copies;
  const ending = `${sep}node_modules${sep}${file.split('/').join(sep)}`;
  const copies = paths.filter((path) => path.endsWith(ending)).map((path) => require.cache[path]?.exports);
  found.set(file, { modules: paths.length, copies });
  return copies;
}

/**
 * Loads an installed package, synchronously: nothing that is not needed is loaded, and a call that needs
 * it does not become asynchronous for that.
 *
 * @throws Error when the package is not installed.
 */
export function loadInstalled(name: string): unknown {
  try {
    return require(name);
  } catch (cause) {
    throw new Error(`The package ${name} is needed here but cannot be loaded: npm install ${name}`, {
      cause,
    });
  }
}
