import type { TypeHandle } from '../compiler/compiler-view.js';
import type { TypeWalk } from './type-walk.js';

/**
 * Whether a type may have members of a kind. A type literal shows its own; others are not looked at here, and
 * the compiler is asked.
 */
export function mayHaveMember(
  type: TypeHandle,
  member: 'CallSignature' | 'IndexSignature',
  { view }: TypeWalk,
): boolean {
  const symbol = view.symbolOf(type);
  const [declaration] = symbol ? view.declarations(symbol) : [];
  if (declaration?.kind !== view.syntaxKinds.TypeLiteral) return true;
  return (declaration?.members ?? []).some(({ kind }) => kind === view.syntaxKinds[member]);
}
