/**
 * Optional packages of users. They are loaded on first use, in a way that bundlers do not follow: a bundle contains a
 * package only if the application imports the entry point that provides it.
 */
const copies = new Map<string, unknown>();

/** Sets the copy of a package to use instead of the one that Node would find. */
export function provide(name: string, copy: unknown): void {
  copies.set(name, copy);
}

export function provided(name: string): unknown {
  return copies.get(name);
}

/** Throws the error of `require` if the package is neither provided nor installed. */
export function loadPackage(name: string): unknown {
  return copies.has(name) ? copies.get(name) : requireOf()(name);
}

/** Whether a bundler included this file in another one, for which Node has no module. */
export function isBundled(): boolean {
  return ownRequire() === undefined;
}

/** The modules that this process has loaded, by file. A bundle reads Node's own list. */
export function loadedModules(): NodeJS.Dict<{ readonly exports: unknown }> {
  if (!isBundled()) return require.cache;
  const node: unknown = globalThis.process?.getBuiltinModule?.('node:module');
  return (node as { readonly _cache?: NodeJS.Dict<NodeJS.Module> } | undefined)?._cache ?? {};
}

/** Bundlers replace `require` and `module.require`. */
function ownRequire(): ((name: string) => unknown) | undefined {
  const own: unknown = typeof module === 'object' ? Reflect.get(module, 'require') : undefined;
  return typeof own === 'function' ? (name) => Reflect.apply(own, module, [name]) : undefined;
}

/** In a bundle, it loads from the folder of the program. */
function requireOf(): (name: string) => unknown {
  const own = ownRequire();
  if (own !== undefined) return own;
  const { createRequire } = process.getBuiltinModule('node:module');
  return createRequire(process.argv[1] ?? `${process.cwd()}/`);
}
