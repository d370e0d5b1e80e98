import { isBundled, loadedModules, TRANSFORM_STORES } from './loaded-modules.cjs';

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

let bundled: readonly unknown[] | undefined;

/** Every copy of class-transformer's store, those in the bundle included that this package may be part of. */
export function transformStores(): readonly unknown[] {
  const loaded = loadedCopies('class-transformer/cjs/storage.js');
  if (!isBundled()) return loaded;
  bundled ??= TRANSFORM_STORES.flatMap((load) => {
    try {
      return [load()];
    } catch {
      // The bundler was told to leave it outside.
      return [];
    }
  });
  return [...bundled, ...loaded];
}
