import { posix } from 'node:path';
import { type FunctionShape, functionsOf } from './function-shapes.js';
import { exportsOf, type ModuleExports } from './module-exports.js';
import { type ImportEdge, importsOf } from './module-imports.js';
import { isThere, listFiles, readText } from './repository.js';
import { parseTypeScript, type Syntax } from './syntax.js';

/** One source file, read and parsed. */
export interface SourceFile {
  /** Relative to the repository: `src/run/loop/drive.ts`. */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly syntax: Syntax;
  readonly imports: readonly ImportEdge[];
  readonly exports: ModuleExports;
  readonly functions: readonly FunctionShape[];
}

/** A file's specifier and the file of this repository that it means. */
export interface LocalImport {
  readonly specifier: string;
  readonly target: string;
}

const FOLDERS = ['src', 'decorators', 'examples'];

let tree: readonly SourceFile[] | undefined;

/** All sources under `src`, `decorators` and `examples`; read once per test file. */
export function sourceTree(): readonly SourceFile[] {
  tree ??= FOLDERS.flatMap(listFiles)
    // What is generated has the shape that its generator gives it.
    .filter((path) => /\.c?ts$/.test(path) && !path.endsWith('.gen.ts'))
    // A program for browsers, of which the build makes one file: no room of the package.
    .filter((path) => !path.startsWith('src/surfaces/inspector/page/'))
    .map((path) => readSource(path, readText(path)));
  return tree;
}

/** The sources of the package itself. */
export function packageSources(): readonly SourceFile[] {
  return sourceTree().filter(({ path }) => !path.startsWith('examples/'));
}

/** A file as the rules see it. Each rule looks at one thing; parsing and walking through a tree take their time. */
export function readSource(path: string, text: string): SourceFile {
  const syntax = once(() => parseTypeScript(text));
  const imports = once(() => importsOf(syntax().body));
  const exports = once(() => exportsOf(syntax().body));
  const functions = once(() => functionsOf(syntax()));
  return {
    path,
    text,
    lines: text.replace(/\n$/, '').split('\n'),
    get syntax() {
      return syntax();
    },
    get imports() {
      return imports();
    },
    get exports() {
      return exports();
    },
    get functions() {
      return functions();
    },
  };
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** The imports of a file that stay within the repository (`./x.js` means `./x.ts`, `./x.cjs` `./x.cts`). */
export function localImports({ path, imports }: SourceFile): LocalImport[] {
  return imports.flatMap(({ specifier }) => {
    if (specifier === undefined || !specifier.startsWith('.')) return [];
    return [{ specifier, target: targetOf(path, specifier) }];
  });
}

/** The names of packages that a file imports, built-in modules and this package left out. */
export function packageImports({ imports }: SourceFile): string[] {
  return imports.flatMap(({ specifier }) => {
    if (specifier === undefined || /^(\.|node:|toolwright(\/|$))/.test(specifier)) return [];
    const parts = specifier.split('/');
    return [parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')];
  });
}

function targetOf(path: string, specifier: string): string {
  const target = posix.normalize(posix.join(posix.dirname(path), specifier));
  const source = target.replace(/\.(c?)js$/, '.$1ts');
  return isThere(source) ? source : target;
}
