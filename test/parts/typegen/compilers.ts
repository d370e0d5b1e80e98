import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ClassicApi,
  type Compiler,
  classicCompiler,
  loadCompiler,
} from '../../../src/dev/typegen/load-compiler.js';
import { ROOT } from '../../structure/repository.js';

const require = createRequire(import.meta.url);

/** The versions of the compilers that are installed in the repository. */
export const VERSIONS = ['7.1', '7.0', '6.0', '5.9'] as const;

/** The folder of the compiler’s package. */
export function compilerPackage(version: (typeof VERSIONS)[number]): string {
  return join(ROOT, 'node_modules', version === '7.0' ? 'typescript' : `typescript-${version}`);
}

const opened = new Map<string, Compiler>();

/** Returns a compiler and caches it, because starting one is slow. */
export async function compilerOf(version: (typeof VERSIONS)[number]): Promise<Compiler> {
  const known = opened.get(version);
  if (known !== undefined) return known;
  const compiler = version.startsWith('7.')
    ? await nativeCompiler(compilerPackage(version))
    : classicCompiler(classicApi(require(`typescript-${version}`)));
  opened.set(version, compiler);
  return compiler;
}

/** Stops the processes of the compilers. */
export function closeCompilers(): void {
  for (const compiler of opened.values()) compiler.close();
  opened.clear();
}

/** Caches the source files of the repository, because parsing them takes most of the time. */
function classicApi(api: ClassicApi): ClassicApi {
  const read = new Map<string, unknown>();
  return {
    ...api,
    createCompilerHost(options) {
      const host = api.createCompilerHost(options) as ReadingHost;
      const getSourceFile: ReadingHost['getSourceFile'] = (path, how, ...rest) => {
        if (!path.startsWith(ROOT)) return host.getSourceFile(path, how, ...rest);
        const key = JSON.stringify([path, how]);
        const file = read.get(key) ?? host.getSourceFile(path, how, ...rest);
        read.set(key, file);
        return file;
      };
      return { ...host, getSourceFile };
    },
  };
}

interface ReadingHost {
  getSourceFile(path: string, how: unknown, ...rest: unknown[]): unknown;
}

/** Loads a compiler package as a project would load its own `typescript`. */
async function nativeCompiler(compiler: string): Promise<Compiler> {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-compiler-'));
  try {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(compiler, join(folder, 'node_modules', 'typescript'), 'junction');
    const loaded = await loadCompiler(folder);
    if (!loaded.ok) throw new Error(loaded.problem);
    return loaded.compiler;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The folder of a fixture. */
export function fixture(name: string): string {
  return join(import.meta.dirname, 'fixtures', name);
}
