import type { Numbers } from './compiler-view.js';
import type { SyntaxNode } from './syntax-node.js';

/** The nodes below another about which the analyser will ask. */
export interface AskedNodes {
  /** Parameters and written types: what type is it? */
  readonly typed: readonly SyntaxNode[];
  /** Names of types and of decorators: what do they name? */
  readonly named: readonly SyntaxNode[];
}

/** Collects them without going into bodies: of a method only its head is of interest. */
export function askedNodes(root: SyntaxNode, kinds: Numbers): AskedNodes {
  const typeKinds = new Set([
    kinds.Parameter,
    kinds.TypeReference,
    kinds.UnionType,
    kinds.LiteralType,
    kinds.ArrayType,
    kinds.TupleType,
    kinds.TypeOperator,
    kinds.ParenthesizedType,
  ]);
  const typed: SyntaxNode[] = [];
  const named: SyntaxNode[] = [];
  const visit = (node: SyntaxNode): undefined => {
    if (node.kind === kinds.Block) return;
    if (typeKinds.has(node.kind)) typed.push(node);
    if (node.typeName !== undefined && node.kind === kinds.TypeReference) named.push(node.typeName);
    if (node.kind === kinds.Decorator) named.push(...calledName(node, kinds));
    node.forEachChild(visit);
  };
  visit(root);
  return { typed, named };
}

/** `@Tool(…)` and `@toolwright.Tool(…)` are asked about by their last name. */
function calledName({ expression }: SyntaxNode, kinds: Numbers): readonly SyntaxNode[] {
  const callee = expression?.kind === kinds.CallExpression ? expression?.expression : expression;
  const name = callee?.kind === kinds.PropertyAccessExpression ? callee?.name : callee;
  return name === undefined ? [] : [name];
}
