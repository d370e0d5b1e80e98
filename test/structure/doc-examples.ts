import { dirname, join, relative } from 'node:path';
import { entryPoints, publicNames } from './entry-points.js';
import { ROOT, readText } from './repository.js';
import { readSource, type SourceFile } from './source-files.js';
import { parseTypeScript } from './syntax.js';

/** A code block in a docstring or on a page. */
export interface DocExample {
  readonly path: string;
  readonly line: number;
  readonly code: string;
}

const NAMES = 'test/structure/example-names.ts';

/** The `ts` blocks in all docstrings of a file, without the asterisks at the start of the lines. */
export function docExamples({ path, text }: SourceFile): DocExample[] {
  return [...text.matchAll(/^[ \t]*\/\*\*[\s\S]*?\*\//gm)].flatMap((comment) =>
    [...comment[0].matchAll(/```ts\n([\s\S]*?)```/g)].map((block) => ({
      path,
      line: text.slice(0, comment.index + block.index).split('\n').length + 1,
      code: (block[1] ?? '').replace(/^[ \t]*\*[ ]?/gm, '').trimEnd(),
    })),
  );
}

/** The `ts` blocks of a page of the manual. */
export function pageExamples(path: string, text: string): DocExample[] {
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(({ index, 1: code = '' }) => ({
    path,
    line: text.slice(0, index).split('\n').length + 1,
    code: code.trimEnd(),
  }));
}

/** The example as a file that type-checks: with imports for the names that it uses but does not declare. */
export function completeExample(example: DocExample, folder: string): string {
  const code = asModule(example.code.replaceAll('{ … }', '{}'));
  const declared = new Set(declaredIn(code));
  const imports = sourcesOfNames(example, folder).flatMap(({ from, names }) => {
    const used = names.filter((name) => !declared.has(name) && new RegExp(`\\b${name}\\b`).test(code));
    for (const name of used) declared.add(name);
    return used.length === 0 ? [] : [`import { ${used.join(', ')} } from '${from}';`];
  });
  return `${imports.join(' ')} ${code}\nexport {};\n`;
}

interface NameSource {
  readonly from: string;
  readonly names: readonly string[];
}

/** The modules that may export a name, in order: the file of the example, the package, the sample application. */
function sourcesOfNames({ path }: DocExample, folder: string): readonly NameSource[] {
  const local = (file: string) => ({ from: specifier(folder, file), names: exportsOf(file) });
  return [...(path.endsWith('.ts') ? [local(path)] : []), ...namesOfPackage(), local(NAMES)];
}

let packageNames: readonly NameSource[] | undefined;

function namesOfPackage(): readonly NameSource[] {
  packageNames ??= entryPoints().map((entryPoint) => ({
    from: entryPoint.name,
    names: [...new Set(publicNames(entryPoint).map(({ name }) => name))].filter((name) => name !== 'default'),
  }));
  return packageNames;
}

const exportsByFile = new Map<string, readonly string[]>();

function exportsOf(file: string): readonly string[] {
  const names = exportsByFile.get(file) ?? [
    ...new Set(readSource(file, readText(file)).exports.names.map(({ name }) => name)),
  ];
  exportsByFile.set(file, names);
  return names;
}

function specifier(folder: string, file: string): string {
  return join(
    relative(join(ROOT, folder), ROOT),
    dirname(file),
    file.split('/').at(-1)?.replace(/\.ts$/, '.js') ?? '',
  );
}

/** An example may be a single method, which needs a class around it. */
function asModule(code: string): string {
  return parses(code) ? code : `abstract class Example extends ExampleToolset { ${code}\n}`;
}

function parses(code: string): boolean {
  try {
    parseTypeScript(code);
    return true;
  } catch {
    return false;
  }
}

function declaredIn(code: string): string[] {
  const declared = code.matchAll(
    /\b(?:const|let|using|class|function|interface|type|enum)\s+(?:\{([^}]*)\}|(\w+))/g,
  );
  const imported = code.matchAll(/\bimport\s+(?:type\s+)?\{([^}]*)\}/g);
  return [...declared, ...imported].flatMap(([, names = '', single = '']) => [
    single,
    ...names.split(',').map(
      (name) =>
        name
          .split(/:| as /)
          .at(-1)
          ?.replace('type ', '')
          .trim() ?? '',
    ),
  ]);
}
