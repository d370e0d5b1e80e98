import { posix } from 'node:path';
import type { ExportedName, ExportKind } from './module-exports.js';
import { readManifest, readText } from './repository.js';
import { readSource, type SourceFile, sourceFiles } from './source-files.js';
import type { SyntaxNode } from './syntax.js';

/** A subpath that users import. */
export interface EntryPoint {
  /** As users import it: `toolwright/openai`. */
  readonly name: string;
  /** The path of its source: `src/models/openai/index.ts`. */
  readonly path: string;
}

/** A name that users can import. */
export interface PublicName {
  readonly entryPoint: EntryPoint;
  readonly name: string;
  /** A value and a type may have the same name, like `Tool`. */
  readonly declarations: readonly Declaration[];
}

export interface Declaration {
  readonly file: SourceFile;
  readonly kind: ExportKind;
  readonly documented: boolean;
}

/** The entry points in the `exports` of `package.json`. */
export function entryPoints(): EntryPoint[] {
  return Object.entries(readManifest().exports)
    .filter(([subpath]) => !subpath.endsWith('.json'))
    .map(([subpath, built]) => ({
      name: posix.join('toolwright', subpath),
      path: built.replace(/^\.\/dist\//, '').replace(/\.js$/, '.ts'),
    }));
}

/** The names that an entry point exports, with their declarations. */
export function publicNames(entryPoint: EntryPoint): PublicName[] {
  const { exports } = fileAt(entryPoint.path);
  return exports.names.map(({ name }) => ({
    entryPoint,
    name,
    declarations: declarationsOf(entryPoint.path, name),
  }));
}

function declarationsOf(path: string, name: string): Declaration[] {
  const file = fileAt(path);
  return file.exports.names
    .filter((exported) => exported.name === name)
    .flatMap((exported) =>
      exported.source
        ? declarationsOf(targetOf(path, exported.source.specifier), exported.source.name)
        : own(file, exported),
    );
}

function own(file: SourceFile, { declared }: ExportedName): Declaration[] {
  if (declared === undefined) return [];
  return [{ file, kind: declared.kind, documented: isDocumented(textBefore(file, declared.node)) }];
}

/** The text before a declaration and its decorators, which may come before `export`. */
function textBefore({ syntax }: SourceFile, node: SyntaxNode): string {
  const declaration = node.declaration as SyntaxNode;
  const [decorator] = (declaration.decorators ?? []) as readonly SyntaxNode[];
  const texts = [node, decorator ?? node].map((start) => syntax.textBefore(start));
  return texts.reduce((shortest, text) => (text.length < shortest.length ? text : shortest));
}

/** Whether a text ends with a doc comment, which line comments may follow. */
function isDocumented(before: string): boolean {
  const text = before.replace(/(\n\s*\/\/[^\n]*)*\s*$/, '');
  return text.endsWith('*/') && text.slice(text.lastIndexOf('/*')).startsWith('/**');
}

function fileAt(path: string): SourceFile {
  return sourceFiles().find((file) => file.path === path) ?? readSource(path, readText(path));
}

function targetOf(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
}
