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
  const trivia = /^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/.exec(text.slice(node.pos))?.[0].length ?? 0;
  return { file: path, line: text.slice(0, node.pos + trivia).split('\n').length };
}
