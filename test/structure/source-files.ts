import { posix } from 'node:path';
import { type FunctionShape, functionsOf } from './function-shapes.js';
import { exportsOf, type ModuleExports } from './module-exports.js';
import { type ImportEdge, importsOf } from './module-imports.js';
import { listFiles, pathExists, readText } from './repository.js';
import { parseTypeScript, type Syntax } from './syntax.js';

/** A parsed source file. */
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

/** The specifier of an import and the file in this repository that it resolves to. */
export interface LocalImport {
  readonly specifier: string;
  readonly target: string;
}

const FOLDERS = ['src', 'decorators', 'examples'];

let files: readonly SourceFile[] | undefined;

/** All sources in `src`, `decorators` and `examples`, read once for each test file. */
export function sourceFiles(): readonly SourceFile[] {
  files ??= FOLDERS.flatMap(listFiles)
    // Generated files do not follow the rules.
    .filter((path) => /\.c?ts$/.test(path) && !path.endsWith('.gen.ts'))
    // A program for browsers, which is bundled separately.
    .filter((path) => !path.startsWith('src/surfaces/inspector/page/'))
    .map((path) => readSource(path, readText(path)));
  return files;
}

/** The sources without the examples. */
export function packageSources(): readonly SourceFile[] {
  return sourceFiles().filter(({ path }) => !path.startsWith('examples/'));
}

/** Parses lazily, because parsing is slow and each rule needs only a part. */
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

function once<Value>(create: () => Value): () => Value {
  let created: { readonly value: Value } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

/** The relative imports of a file; `./x.js` resolves to `./x.ts`, and `./x.cjs` to `./x.cts`. */
export function localImports({ path, imports }: SourceFile): LocalImport[] {
  return imports.flatMap(({ specifier }) => {
    if (specifier === undefined || !specifier.startsWith('.')) return [];
    return [{ specifier, target: targetOf(path, specifier) }];
  });
}

/** The packages that a file imports, except built-in modules and this package. */
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
  return pathExists(source) ? source : target;
}
