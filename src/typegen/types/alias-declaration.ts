import type { CompilerView } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';

/** The declaration of the alias that a type node names; nothing for generic aliases, whose node is another type. */
export function aliasDeclaration(view: CompilerView, node: SyntaxNode): SyntaxNode | undefined {
  if (node.kind === view.syntaxKinds.ParenthesizedType) return node.type && aliasDeclaration(view, node.type);
  if (node.kind !== view.syntaxKinds.TypeReference || node.typeName === undefined) return undefined;
  if ((node.typeArguments ?? []).length > 0) return undefined;
  const symbol = view.symbolAt(node.typeName);
  const declaration = symbol && view.declarations(view.unalias(symbol))[0];
  return declaration?.kind === view.syntaxKinds.TypeAliasDeclaration ? declaration : undefined;
}
