import type { SourceText } from './compiler-view.js';
import type { SyntaxNode } from './syntax-node.js';

/** A source file, which is a node too; the same of both compilers. */
export interface SourceFile extends SyntaxNode {
  readonly fileName: string;
  readonly text: string;
  readonly isDeclarationFile: boolean;
}

/** The file as the analyser reads it. */
export function sourceText(file: SourceFile): SourceText {
  return { path: file.fileName, text: file.text, node: file, isDeclaration: file.isDeclarationFile };
}

/** The file that a node stands in. */
export function fileOf(node: SyntaxNode): SourceFile {
  let current = node;
  while (current.parent !== undefined) current = current.parent;
  return current as SourceFile;
}
