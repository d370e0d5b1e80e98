import { posix } from 'node:path';
import type { ExportedName, ExportKind } from './module-exports.js';
import { readManifest, readText } from './repository.js';
import { readSource, type SourceFile, sourceTree } from './source-tree.js';
import type { SyntaxNode } from './syntax.js';

/** A subpath that users import. */
export interface EntryPoint {
  /** What users write: `toolwright/openai`. */
  readonly name: string;
  /** Its source: `src/models/openai/index.ts`. */
  readonly path: string;
}

/** A name that users can import, and where it is declared. */
export interface PublicName {
  readonly entryPoint: EntryPoint;
  readonly name: string;
  /** Both a value and a type may stand under one name, as for `Tool`. */
  readonly declarations: readonly Declaration[];
}

/** One declaration of a public name. */
export interface Declaration {
  readonly file: SourceFile;
  readonly kind: ExportKind;
  readonly documented: boolean;
}

/** The entries of the package, as `package.json` lists them. */
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
    .filter((one) => one.name === name)
    .flatMap((one) =>
      one.source ? declarationsOf(targetOf(path, one.source.specifier), one.source.name) : own(file, one),
    );
}

function own(file: SourceFile, { declared }: ExportedName): Declaration[] {
  if (declared === undefined) return [];
  return [{ file, kind: declared.kind, documented: isDocumented(textBefore(file, declared.node)) }];
}

/** The text before a declaration; the decorators of an exported class may stand before its `export`. */
function textBefore({ syntax }: SourceFile, node: SyntaxNode): string {
  const declaration = node.declaration as SyntaxNode;
  const [decorator] = (declaration.decorators ?? []) as readonly SyntaxNode[];
  const places = [node, decorator ?? node].map((one) => syntax.textBefore(one));
  return places.reduce((one, other) => (other.length < one.length ? other : one));
}

/** Whether a text ends in a doc comment; line comments for tools may stand between it and the declaration. */
function isDocumented(before: string): boolean {
  const text = before.replace(/(\n\s*\/\/[^\n]*)*\s*$/, '');
  return text.endsWith('*/') && text.slice(text.lastIndexOf('/*')).startsWith('/**');
}

function fileAt(path: string): SourceFile {
  return sourceTree().find((file) => file.path === path) ?? readSource(path, readText(path));
}

function targetOf(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
}
