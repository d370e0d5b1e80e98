import type { TypeHandle } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import { aliasDeclaration } from './alias-declaration.js';
import { enumMember } from './enum-notes.js';
import { orderedPath } from './ordered-path.js';
import { hasFlag, type TypeWalk } from './type-walk.js';

/** A part of a union as its author wrote it. */
export interface DeclaredPart {
  readonly type: TypeHandle;
  readonly node?: SyntaxNode;
}

/**
 * The parts of a union in the author's order, read from the source: compilers keep unions in orders of
 * their own, each in another. What the source does not show (`keyof T`, `Exclude<…>`) comes in the order of
 * an enum's members, or by value.
 */
export function declaredOrder(
  parts: readonly TypeHandle[],
  node: SyntaxNode | undefined,
  walk: TypeWalk,
): readonly DeclaredPart[] {
  const wanted = new Map(parts.map((part) => [part.id, part]));
  const ordered: DeclaredPart[] = [];
  for (const part of node ? partsOf(node, walk) : []) {
    if (!wanted.delete(part.type.id)) continue;
    ordered.push(part);
  }
  return [...ordered, ...byValue([...wanted.values()], walk).map((type) => ({ type }))];
}

function partsOf(node: SyntaxNode, walk: TypeWalk): readonly DeclaredPart[] {
  const { view } = walk;
  if (node.kind === view.syntaxKinds.UnionType)
    return (node.types ?? []).flatMap((one) => partsOf(one, walk));
  if (node.kind === view.syntaxKinds.ParenthesizedType && node.type) return partsOf(node.type, walk);
  const alias = aliasDeclaration(view, node);
  const type = view.typeFromNode(node);
  const isUnion = hasFlag(walk, type, 'Union') && !hasFlag(walk, type, 'Boolean');
  if (alias?.type !== undefined && isUnion) return partsOf(alias.type, walk);
  if (hasFlag(walk, type, 'Union'))
    return byValue(view.constituents(type), walk).map((part) => ({ type: part }));
  return [{ type, node }];
}

function byValue(types: readonly TypeHandle[], walk: TypeWalk): readonly TypeHandle[] {
  const keyed = types.map((type) => ({ type, key: sortKey(type, walk) }));
  return keyed.sort((one, other) => compare(one.key, other.key)).map(({ type }) => type);
}

type SortKey = readonly (string | number)[];

function sortKey(type: TypeHandle, walk: TypeWalk): SortKey {
  const member = enumMember(type, walk);
  if (member !== undefined) return [0, orderedPath(walk.view.fileOf(member)), member.pos];
  const literal = walk.view.literalOf(type);
  if (typeof literal === 'number') return [1, literal];
  if (typeof literal === 'bigint') return [2, Number(literal)];
  if (literal !== undefined) return [3, String(literal)];
  const symbol = walk.view.symbolOf(type);
  const [declaration] = symbol ? walk.view.declarations(symbol) : [];
  // A generic type stands here once for each of its arguments, which only their text tells apart.
  if (declaration === undefined) return [4, walk.view.textOf(type)];
  return [5, orderedPath(walk.view.fileOf(declaration)), declaration.pos, walk.view.textOf(type)];
}

function compare(one: SortKey, other: SortKey): number {
  for (const [index, value] of one.entries()) {
    const against = other[index];
    if (against === undefined) return 1;
    if (value === against) continue;
    return value < against ? -1 : 1;
  }
  return 0;
}
