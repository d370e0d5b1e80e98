import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type ClassicApi, classicCompiler } from '../../../src/typegen/compiler/classic-compiler.js';
import type { Compiler } from '../../../src/typegen/compiler/compiler-view.js';
import { loadCompiler } from '../../../src/typegen/compiler/load-compiler.js';
import { ROOT } from '../../house/repository.js';

const require = createRequire(import.meta.url);

/** The compilers that the repository has, by version. */
export const VERSIONS = ['7.0', '6.0', '5.9'] as const;

const opened = new Map<string, Compiler>();

/** A compiler; kept, because starting one takes longer than using it. */
export async function compilerOf(version: (typeof VERSIONS)[number]): Promise<Compiler> {
  const known = opened.get(version);
  if (known !== undefined) return known;
  const compiler =
    version === '7.0' ? await installed() : classicCompiler(classicApi(require(`typescript-${version}`)));
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

async function installed(): Promise<Compiler> {
  const loaded = await loadCompiler(ROOT);
  if (!loaded.ok) throw new Error(loaded.problem);
  return loaded.compiler;
}

/** The folder of a fixture. */
export function fixture(name: string): string {
  return join(import.meta.dirname, 'fixtures', name);
}
