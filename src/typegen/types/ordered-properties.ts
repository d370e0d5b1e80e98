import type { SymbolHandle, TypeHandle } from '../compiler/compiler-view.js';
import { orderedPath } from './ordered-path.js';
import { hasFlag, type TypeWalk } from './type-walk.js';

/**
 * The properties of a type in an order that does not depend on the compiler: those of bases first, then as
 * declared. Mapped types take the order of their keys, which each compiler keeps in its own: there the
 * place of the declaration counts, and the name where there is none.
 */
export function orderedProperties(type: TypeHandle, walk: TypeWalk): readonly SymbolHandle[] {
  const symbols = new Map(
    walk.view
      .propertiesOf(type)
      .filter(({ name }) => !name.startsWith('__@') && name !== '__proto__')
      .map((symbol) => [symbol.name, symbol] as const),
  );
  const names = new Set(namesOf(type, walk));
  return [...names, ...symbols.keys()].flatMap((name) => {
    const symbol = symbols.get(name);
    symbols.delete(name);
    return symbol ?? [];
  });
}

function namesOf(type: TypeHandle, walk: TypeWalk): readonly string[] {
  const { view } = walk;
  if (hasFlag(walk, type, 'Intersection')) {
    return view.constituents(type).flatMap((part) => namesOf(part, walk));
  }
  const own = view.propertiesOf(type);
  if (hasObjectFlag(type, 'Mapped', walk)) return byDeclaration(own, walk);
  const isClassOrInterface = hasObjectFlag(type, 'Class', walk) || hasObjectFlag(type, 'Interface', walk);
  const bases = isClassOrInterface ? view.baseTypes(type).flatMap((base) => namesOf(base, walk)) : [];
  return [...bases, ...own.map(({ name }) => name)];
}

function hasObjectFlag(type: TypeHandle, name: string, { view }: TypeWalk): boolean {
  return ((type.objectFlags ?? 0) & (view.objectFlags[name] ?? 0)) !== 0;
}

function byDeclaration(symbols: readonly SymbolHandle[], { view }: TypeWalk): readonly string[] {
  const placed = symbols.map((symbol) => {
    const [node] = view.declarations(symbol);
    return { name: symbol.name, file: node ? orderedPath(view.fileOf(node)) : '\uffff', pos: node?.pos ?? 0 };
  });
  placed.sort(
    (one, other) => compare(one.file, other.file) || one.pos - other.pos || compare(one.name, other.name),
  );
  return placed.map(({ name }) => name);
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
