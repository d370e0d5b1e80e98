import { loadedModules } from '../../core/kernel/optional-package.cjs';

const found = new Map<string, { readonly modules: number; readonly copies: readonly unknown[] }>();

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
