import type { CompilerView, SymbolHandle } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import type { Finding } from './class-draft.js';

/** What all parts of one run over a project share. */
export interface ProjectScan {
  readonly view: CompilerView;
  readonly faults: Finding[];
  readonly warnings: Finding[];
  /** DTO classes that a type led to and that are described on their own, in the order of appearance. */
  readonly dataClasses: Map<SyntaxNode, SymbolHandle>;
}

/** Where a node stands, for people. */
export function lineOf(node: SyntaxNode, view: CompilerView): Pick<Finding, 'file' | 'line'> {
  const { path, text } = view.fileOf(node);
  return { file: path, line: text.slice(0, startOf(node, text)).split('\n').length };
}

/** Where a node begins in its file, behind the comments and spaces before it. */
export function startOf({ pos }: SyntaxNode, text: string): number {
  return pos + (/^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/.exec(text.slice(pos))?.[0].length ?? 0);
}
