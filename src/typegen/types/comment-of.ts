import { type DocComment, docCommentAt } from '../comments/doc-comment.js';
import type { CompilerView } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';

/** The TSDoc comment before a declaration. */
export function commentOf(view: CompilerView, node: SyntaxNode): DocComment | undefined {
  const isVariable = node.kind === view.syntaxKinds.VariableDeclaration;
  return docCommentAt(view.fileOf(node).text, isVariable ? (node.parent?.parent?.pos ?? node.pos) : node.pos);
}
