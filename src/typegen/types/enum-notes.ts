import type { TypeHandle } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import { commentOf } from './comment-of.js';
import { hasFlag, type TypeWalk } from './type-walk.js';

/** What the members of an enum say about themselves: "- `open`: not yet paid". */
export function enumNotes(types: readonly TypeHandle[], walk: TypeWalk): readonly string[] {
  return types.flatMap((type) => {
    const member = enumMember(type, walk);
    const said = member && commentOf(walk.view, member)?.summary;
    return said ? [`- \`${walk.view.literalOf(type)}\`: ${said}`] : [];
  });
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
