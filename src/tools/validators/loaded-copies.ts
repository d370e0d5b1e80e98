import { loadedModules, provided } from '../../core/kernel/optional-package.cjs';
import { declarations } from '../../core/metadata/class-record.js';

/** The name under which a bundled application provides the stores of class-transformer. */
export const TRANSFORM_STORES = 'class-transformer/storage';

interface Found {
  readonly modules: number;
  readonly copies: readonly unknown[];
}

const found = new Map<string, Found>();

/**
 * The exports of every copy of a CommonJS file that this process has loaded, for example
 * `class-transformer/cjs/storage.js`. The function loads nothing: metadata exists only if the application has loaded
 * the package, and with linked or nested installations that may be another copy than this package would resolve.
 */
export function loadedCopies(file: string): readonly unknown[] {
  const loaded = loadedModules();
  const paths = Object.keys(loaded);
  const before = found.get(file);
  if (before?.modules === paths.length) return before.copies;
  // Windows uses backslashes.
  const ending = `/node_modules/${file}`;
  const copies = paths
    .filter((path) => path.replaceAll('\\', '/').endsWith(ending))
    .map((path) => loaded[path]?.exports);
  found.set(file, { modules: paths.length, copies });
  return copies;
}

let stores: { readonly at: number; readonly copies: readonly unknown[] } | undefined;

/**
 * Every copy of class-transformer's store, including those in the application's bundle. A class's dependencies were
 * loaded before it, so the search is repeated only after new declarations or calls of the author's type functions:
 * the module list of a large application is long.
 */
export function transformStores(): readonly unknown[] {
  const at = declarations();
  if (stores?.at !== at) {
    const bundled = provided(TRANSFORM_STORES) as readonly unknown[] | undefined;
    stores = { at, copies: [...(bundled ?? []), ...loadedCopies('class-transformer/cjs/storage.js')] };
  }
  return stores.copies;
}

/** Marks that a function of the author ran, which may have loaded modules. */
export function authorHasRun(): void {
  stores = undefined;
}
