/** class-validator, where a bundler sees it. */
export function loadClassValidator(): unknown {
  return require('class-validator');
}

/**
 * The stores of class-transformer's decorators: a bundler takes one form of the package, and resolves these paths as it
 * did for the application. Forms that it left outside of the bundle are missing.
 */
export function loadTransformStores(): readonly unknown[] {
  const stores = [
    () => require('class-transformer/cjs/storage.js'),
    () => require('class-transformer/esm5/storage.js'),
    () => require('class-transformer/esm2015/storage.js'),
  ];
  return stores.flatMap((load) => {
    try {
      return [load()];
    } catch {
      return [];
    }
  });
}
