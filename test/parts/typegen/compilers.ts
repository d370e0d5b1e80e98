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

/** The compilers that the repository has, by version. */
export const VERSIONS = ['7.1', '7.0', '6.0', '5.9'] as const;

/** The folder of its package. */
export function compilerPackage(version: (typeof VERSIONS)[number]): string {
  return join(ROOT, 'node_modules', version === '7.0' ? 'typescript' : `typescript-${version}`);
}

const opened = new Map<string, Compiler>();

/** A compiler; kept, because starting one takes longer than using it. */
export async function compilerOf(version: (typeof VERSIONS)[number]): Promise<Compiler> {
  const known = opened.get(version);
  if (known !== undefined) return known;
  const compiler = version.startsWith('7.')
    ? await nativeCompiler(compilerPackage(version))
    : classicCompiler(classicApi(require(`typescript-${version}`)));
  opened.set(version, compiler);
  return compiler;
}

/** Ends the processes that compilers run as. */
export function closeCompilers(): void {
  for (const compiler of opened.values()) compiler.close();
  opened.clear();
}

/** The API of a compiler that reads each file of the repository once, which takes longer than all else. */
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

/** A package of the repository, loaded as by a project whose `typescript` it is. */
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
