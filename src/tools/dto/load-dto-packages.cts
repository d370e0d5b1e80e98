/** Loads class-validator in a way that bundlers follow. */
export function loadClassValidator(): unknown {
  return require('class-validator');
}

/**
 * The stores of class-transformer's decorators. A bundler includes one form of the package, and resolves these paths
 * as for the application. Other forms are missing in the bundle.
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
