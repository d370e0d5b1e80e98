import type { SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
import { anyOf, commentOf, describeSchema, writeItem } from './finish-schema.js';
import { guarded, standardType } from './standard-type.js';
import {
  type DescribedSchema,
  fault,
  hasFlag,
  type TypePlace,
  type TypeWalk,
  type Written,
} from './type-walk.js';
import { mayHaveMember, writeProperties } from './write-properties.js';

/** An object type: an array, a tuple, a class, something of the language itself, or plain data. */
export function writeObjectType(place: TypePlace, walk: TypeWalk): Written {
  const { type, path } = place;
  const { view } = walk;
  const key = String(type.id);
  if (view.isArray(type) || view.isTuple(type)) {
    const write = () => (view.isArray(type) ? writeArray(place, walk) : writeTuple(place, walk));
    // Only by its own alias can a list contain itself; otherwise the name is that of what it lists.
    return view.aliasOf(type) === undefined ? write() : guarded({ key, type, path }, walk, write);
  }
  const standard = standardType(place, walk);
  if (standard !== undefined) return standard;
  const list = listBase(type, walk);
  if (list !== undefined)
    return guarded({ key, type, path }, walk, () => writeExtendedList(list, place, walk));
  if (mayHaveMember(type, 'CallSignature', walk) && view.callSignatures(type).length > 0) {
    return writeFunction(place, walk);
  }
  if (walk.direction === 'out' && isIterable(type, walk)) return { schema: {} };
  const symbol = view.symbolOf(type);
  const isClass = symbol !== undefined && (symbol.flags & (view.symbolFlags.Class ?? 0)) !== 0;
  return guarded({ key, type, path }, walk, () =>
    isClass && !hasFlag(walk, type, 'Intersection')
      ? writeClassType(place, walk)
      : writeProperties(place, walk),
  );
}

/** It is written as a list, as an object or by its fields: that depends on the value. */
function isIterable(type: TypeHandle, { view }: TypeWalk): boolean {
  const names = view.propertiesOf(type).map(({ name }) => name);
  return names.some((name) => ITERATOR.test(name)) && !names.includes('toJSON');
}

/** As the compilers name members whose keys are symbols. */
const ITERATOR = /^__@(?:iterator|asyncIterator)(?:@|$)/;

/** A function is nothing in JSON: refused on the way in, left out on the way out. */
function writeFunction({ path }: TypePlace, walk: TypeWalk): Written {
  if (walk.direction === 'out') return { schema: {} satisfies DescribedSchema };
  return fault(walk, path, { problem: 'is a function, which JSON cannot carry' });
}

/**
 * A class. On the way out it is what `JSON.stringify` shows of it. On the way in instances are made, so that
 * it has to be plain data that a new instance can take.
 */
function writeClassType(place: TypePlace, walk: TypeWalk): Written {
  const symbol = walk.view.symbolOf(place.type);
  if (walk.direction === 'out') return writeResult(place, walk);
  if (symbol === undefined) return writeProperties(place, walk);
  const of = walk.classReference(symbol);
  if (of.kind === 'fault') return fault(walk, place.path, of);
  if (of.kind === 'structural') return writeProperties(place, walk);
  const [declaration] = walk.view.declarations(symbol);
  const comment = declaration && commentOf(walk.view, declaration);
  return describeSchema({ schema: { instanceOf: of.reference } }, comment && { ...comment, tags: [] });
}

/** Of an instance without fields that JSON shows, its text or an error is written: that depends on the class. */
function writeResult(place: TypePlace, walk: TypeWalk): Written {
  const written = writeProperties(place, walk);
  const isEmpty = written.schema.type === 'object' && Object.keys(written.schema).length === 1;
  return isEmpty ? { schema: {} } : written;
}

/** `T[]`, `readonly T[]`, `Array<T>`. */
function writeArray({ type, node, path }: TypePlace, walk: TypeWalk): Written {
  const [item] = walk.view.typeArguments(type);
  if (item === undefined) return { schema: { type: 'array' } };
  const items = writeItem({ type: item, node: node && itemNode(node, walk), path: `${path}[]` }, walk);
  return { schema: { type: 'array', ...(Object.keys(items).length === 0 ? {} : { items }) } };
}

function itemNode(node: SyntaxNode, walk: TypeWalk): SyntaxNode | undefined {
  const { syntaxKinds } = walk.view;
  if (node.kind === syntaxKinds.ArrayType) return node.elementType;
  if (node.kind === syntaxKinds.TypeOperator) return node.type && itemNode(node.type, walk);
  if (node.kind === syntaxKinds.ParenthesizedType) return node.type && itemNode(node.type, walk);
  return node.kind === syntaxKinds.TypeReference ? node.typeArguments?.[0] : undefined;
}

/** A tuple. What comes after a rest element may be any of the types from there on: JSON Schema cannot say more. */
function writeTuple({ type, node, path }: TypePlace, walk: TypeWalk): Written {
  const elements = walk.view.tupleElements(type);
  const nodes = elementNodes(node, walk);
  const schemas = elements.map((element, index) =>
    writeItem({ type: element.type, node: nodes[index], path: `${path}[${index}]` }, walk),
  );
  const open = elements.findIndex(({ role }) => role === 'rest' || role === 'variadic');
  const minItems = elements.filter(({ role }) => role === 'required').length;
  const fixed = open < 0 ? schemas : schemas.slice(0, open);
  const rest = open < 0 ? [] : schemas.slice(open);
  return {
    schema: {
      type: 'array',
      ...(fixed.length > 0 ? { prefixItems: fixed } : {}),
      ...(rest.length > 0 ? { items: anyOf(rest) } : {}),
      ...(minItems > 0 ? { minItems } : {}),
      ...(open < 0 ? { maxItems: elements.length } : {}),
    },
  };
}

function elementNodes(node: SyntaxNode | undefined, walk: TypeWalk): readonly (SyntaxNode | undefined)[] {
  const { syntaxKinds } = walk.view;
  if (node?.kind === syntaxKinds.TypeOperator) return elementNodes(node?.type, walk);
  if (node?.kind !== syntaxKinds.TupleType) return [];
  return (node?.elements ?? []).map((element) =>
    element.kind === syntaxKinds.NamedTupleMember || element.kind === syntaxKinds.OptionalType
      ? element.type
      : element,
  );
}

/** The list that an interface or a class extends, however far up. */
function listBase(type: TypeHandle, walk: TypeWalk): TypeHandle | undefined {
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
function writeExtendedList(list: TypeHandle, place: TypePlace, walk: TypeWalk): Written {
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
