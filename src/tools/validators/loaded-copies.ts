import { loadedModules, provided } from '../../core/kernel/optional-package.cjs';
import { declarations } from '../../core/metadata/class-record.js';

/** The name under which an application that is bundled provides the stores of class-transformer. */
export const TRANSFORM_STORES = 'class-transformer/storage';

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
  const loaded = loadedModules();
  const paths = Object.keys(loaded);
  const before = found.get(file);
  if (before?.modules === paths.length) return before.copies;
  // Windows separates folders by backslashes.
  const ending = `/node_modules/${file}`;
  const copies = paths
    .filter((path) => path.replaceAll('\\', '/').endsWith(ending))
    .map((path) => loaded[path]?.exports);
  found.set(file, { modules: paths.length, copies });
  return copies;
}

let stores: { readonly at: number; readonly copies: readonly unknown[] } | undefined;

/**
 * Every copy of class-transformer's store, those in the bundle included that this package may be part of. What a
 * class refers to was loaded before it, so that nobody looks again until more is declared or a function has named a
 * type: the list of a large application is long.
 */
export function transformStores(): readonly unknown[] {
  const at = declarations();
  if (stores?.at !== at) stores = { at, copies: findTransformStores() };
  return stores.copies;
}

/** Says that a function of the author's has run, which may have loaded modules. */
export function authorHasRun(): void {
  stores = undefined;
}

function findTransformStores(): readonly unknown[] {
  const bundled = provided(TRANSFORM_STORES) as readonly unknown[] | undefined;
  return [...(bundled ?? []), ...loadedCopies('class-transformer/cjs/storage.js')];
}
