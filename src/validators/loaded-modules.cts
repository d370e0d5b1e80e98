/**
 * The modules that this process has loaded, by file. A bundle has none, or none of what is within it; what lies
 * beside it is Node's own list.
 */
export function loadedModules(): NodeJS.Dict<{ readonly exports: unknown }> {
  return isBundled() ? (nodesOwnList() ?? {}) : require.cache;
}

/** Whether a bundler has put this file into another one: then it is none of the loaded modules. */
export function isBundled(): boolean {
  return typeof __filename !== 'string' || require.cache?.[__filename]?.exports !== exports;
}

function nodesOwnList(): NodeJS.Dict<NodeJS.Module> | undefined {
  const nodes: unknown = globalThis.process?.getBuiltinModule?.('node:module');
  return (nodes as { readonly _cache?: NodeJS.Dict<NodeJS.Module> } | undefined)?._cache;
}

export function loadClassValidator(): unknown {
  return require('class-validator');
}

/**
 * class-transformer's store in each of the forms that the package has; a bundler takes one of them, and resolves it
 * here as it did for the application.
 */
export const TRANSFORM_STORES: readonly (() => unknown)[] = [
  () => require('class-transformer/cjs/storage.js'),
  () => require('class-transformer/esm5/storage.js'),
  () => require('class-transformer/esm2015/storage.js'),
];
