import type { CompilerView, SourceText, SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
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
  const ordered = node ? partsOf(node, walk).filter(({ type }) => wanted.delete(type.id)) : [];
  return [...ordered, ...byValue([...wanted.values()], walk).map((type) => ({ type }))];
}

function partsOf(node: SyntaxNode, walk: TypeWalk): readonly DeclaredPart[] {
  const { view } = walk;
  if (node.kind === view.syntaxKinds.UnionType)
    return (node.types ?? []).flatMap((item) => partsOf(item, walk));
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
  return keyed.sort((a, b) => compareKeys(a.key, b.key)).map(({ type }) => type);
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

function compareKeys(a: SortKey, b: SortKey): number {
  for (const [index, value] of a.entries()) {
    const against = b[index];
    if (against === undefined) return 1;
    if (value === against) continue;
    return value < against ? -1 : 1;
  }
  return 0;
}

const LANGUAGE_FILE = /(?:^|\/)(lib\.[\w.]+\.d\.ts)$/;

/**
 * What a file is ordered by: the same on every machine, wherever the project, its packages and the compiler
 * are installed. The language comes first, then packages, then the project.
 */
export function orderedPath({ path, isDeclaration }: Pick<SourceText, 'path' | 'isDeclaration'>): string {
  const language = LANGUAGE_FILE.exec(path)?.[1];
  if (isDeclaration && language !== undefined) return `0 ${language}`;
  const [inProject, ...inPackages] = path.split('/node_modules/');
  return inPackages.length > 0 ? `1 ${inPackages.at(-1)}` : `2 ${inProject}`;
}

/** The declaration of the alias that a type node names; nothing for generic aliases, whose node is another type. */
export function aliasDeclaration(view: CompilerView, node: SyntaxNode): SyntaxNode | undefined {
  if (node.kind === view.syntaxKinds.ParenthesizedType) return node.type && aliasDeclaration(view, node.type);
  if (node.kind !== view.syntaxKinds.TypeReference || node.typeName === undefined) return undefined;
  if ((node.typeArguments ?? []).length > 0) return undefined;
  const symbol = view.symbolAt(node.typeName);
  const declaration = symbol && view.declarations(view.unalias(symbol))[0];
  return declaration?.kind === view.syntaxKinds.TypeAliasDeclaration ? declaration : undefined;
}

/** The declaration of an enum's member, whose parent is the enum. */
export function enumMember(type: TypeHandle, walk: Pick<TypeWalk, 'view'>): SyntaxNode | undefined {
  if (!hasFlag(walk, type, 'EnumLiteral')) return undefined;
  const symbol = walk.view.symbolOf(type);
  const [declaration] = symbol ? walk.view.declarations(symbol) : [];
  if (declaration?.kind === walk.view.syntaxKinds.EnumMember) return declaration;
  // The type of an enum with one member is the enum's own.
  const [member, second] = declaration?.members ?? [];
  return second === undefined ? member : undefined;
}
