import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ClassicApi, classicCompiler } from './classic-compiler.js';
import type { Compiler } from './compiler-view.js';
import {
  NATIVE_DIALECTS,
  type NativeDialect,
  type NativeModule,
  type NativeParts,
  type NativeSyntax,
  nativeCompiler,
} from './native-compiler.js';

/** A compiler, or why there is none, as a sentence for the user. */
type LoadedCompiler =
  | { readonly ok: true; readonly compiler: Compiler }
  | { readonly ok: false; readonly problem: string };

const CLASSIC_VERSIONS: readonly string[] = ['5.9', '6.0'];

/** The supported versions, for people. */
const WORKING = `${[...CLASSIC_VERSIONS, ...NATIVE_DIALECTS.keys()].join(', ').replace(/, (?=[^,]+$)/, ' and ')} work`;

/** Loads the project's own TypeScript, whose errors its author sees. The folder is that of tsconfig.json. */
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
  const minor = version.split('.', 2).join('.');
  // ts-jest compiles this file to CommonJS, in which `import()` would be a `require` of a URL.
  if (CLASSIC_VERSIONS.includes(minor))
    return { ok: true, compiler: classicCompiler(require('typescript') as ClassicApi) };
  const dialect = NATIVE_DIALECTS.get(minor);
  const parts = dialect && (await loadParts(require, dialect));
  return parts === undefined
    ? { ok: false, problem: `TypeScript ${version} in ${folder} is not supported: ${WORKING}` }
    : { ok: true, compiler: nativeCompiler({ version, ...parts }) };
}

/** `undefined` if the package's API differs from that of its version. */
async function loadParts(
  require: NodeJS.Require,
  dialect: NativeDialect,
): Promise<Omit<NativeParts, 'version'> | undefined> {
  const paths = resolveAll(require, [dialect.api, dialect.syntax]);
  if (paths === undefined) return undefined;
  const [module, syntax] = await Promise.all(paths.map((path) => importFile<unknown>(path)));
  return dialect.understands(module as NativeModule)
    ? { dialect, module: module as NativeModule, syntax: syntax as NativeSyntax }
    : undefined;
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
