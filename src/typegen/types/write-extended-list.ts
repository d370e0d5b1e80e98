import type { TypeHandle } from '../compiler/compiler-view.js';
import { commentOf } from './comment-of.js';
import { describeSchema } from './finish-schema.js';
import { fault, hasFlag, type TypePlace, type TypeWalk, type Written } from './type-walk.js';
import { writeItem, writeTuple } from './write-array.js';

/** The list that an interface or a class extends, however far up. */
export function listBase(type: TypeHandle, walk: TypeWalk): TypeHandle | undefined {
  const { view } = walk;
  const { Interface = 0, Class = 0 } = view.symbolFlags;
  if (((view.symbolOf(type)?.flags ?? 0) & (Interface | Class)) === 0) return undefined;
  for (const base of view.baseTypes(type)) {
    const list = view.isArray(base) || view.isTuple(base) ? base : listBase(base, walk);
    if (list !== undefined) return list;
  }
  return undefined;
}

/** `interface Page<Row> extends Array<Row>`: a list. What else it has, JSON cannot carry. */
export function writeExtendedList(list: TypeHandle, place: TypePlace, walk: TypeWalk): Written {
  const { type, path } = place;
  const { view } = walk;
  const symbol = view.symbolOf(type);
  const isClass = ((symbol?.flags ?? 0) & (view.symbolFlags.Class ?? 0)) !== 0;
  if (isClass && walk.direction === 'in') {
    return fault(walk, path, {
      problem: `is the class ${symbol?.name}, which extends a list; JSON has plain lists only`,
      fix: 'the type of the list itself: string[]',
    });
  }
  const [declaration] = symbol ? view.declarations(symbol) : [];
  const comment = declaration && commentOf(view, declaration);
  return describeSchema(writeList(list, place, walk), comment && { ...comment, tags: [] });
}

function writeList(list: TypeHandle, { type, path }: TypePlace, walk: TypeWalk): Written {
  const { view } = walk;
  if (view.isTuple(list)) return writeTuple({ type: list, path }, walk);
  // The base of a generic interface is generic still; its own index signature says what it holds here.
  const item = view.indexesOf(type).find(({ key }) => hasFlag(walk, key, 'Number'))?.value;
  return {
    schema: { type: 'array', ...(item ? { items: writeItem({ type: item, path: `${path}[]` }, walk) } : {}) },
  };
}
