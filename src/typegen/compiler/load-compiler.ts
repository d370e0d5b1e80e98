import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ClassicApi, classicCompiler } from './classic-compiler.js';
import type { Compiler } from './compiler-view.js';
import { type NativeModule, type NativeSyntax, nativeCompiler } from './native-compiler.js';

/** A compiler, or why there is none; `problem` is a sentence for the user. */
type LoadedCompiler =
  | { readonly ok: true; readonly compiler: Compiler }
  | { readonly ok: false; readonly problem: string };

/** Where TypeScript 7.0 keeps its synchronous API, and where 7.1 moves it. */
const NATIVE_DOORS = [
  { api: 'typescript/sync', syntax: 'typescript/ast' },
  { api: 'typescript/unstable/sync', syntax: 'typescript/unstable/ast' },
] as const;

/**
 * The TypeScript that the project itself has: the one that its author sees the errors of. The folder is
 * that of the tsconfig.json.
 */
export async function loadCompiler(folder: string): Promise<LoadedCompiler> {
  const require = createRequire(pathToFileURL(join(folder, 'tsconfig.json')));
  let manifest: string;
  try {
    manifest = require.resolve('typescript/package.json');
  } catch {
    return {
      ok: false,
      problem: `there is no TypeScript in ${folder}: npm install --save-dev typescript`,
    };
  }
  const { version } = require(manifest) as { readonly version: string };
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 5 || (major === 5 && minor < 9)) {
    return { ok: false, problem: `TypeScript ${version} is too old: 5.9 or newer is needed` };
  }
  if (major < 7) {
    // ts-jest makes CommonJS of this file, in which `import()` would require a URL.
    return { ok: true, compiler: classicCompiler(require('typescript') as ClassicApi) };
  }
  for (const door of NATIVE_DOORS) {
    const paths = resolveAll(require, [door.api, door.syntax]);
    if (paths === undefined) continue;
    const [module, syntax] = await Promise.all(paths.map((path) => importFile<unknown>(path)));
    return {
      ok: true,
      compiler: nativeCompiler({
        version,
        module: module as NativeModule,
        syntax: syntax as NativeSyntax,
      }),
    };
  }
  return {
    ok: false,
    problem: `TypeScript ${version} (${dirname(manifest)}) has no API that is known here`,
  };
}

function resolveAll(require: NodeJS.Require, names: readonly string[]): readonly string[] | undefined {
  try {
    return names.map((name) => require.resolve(name));
  } catch {
    return undefined;
  }
}

function importFile<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(path).href);
}
