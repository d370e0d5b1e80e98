import type { SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
import { commentOf, describeSchema, writeSchema } from './finish-schema.js';
import {
  admitsUndefined,
  type DescribedSchema,
  definedParts,
  fault,
  hasFlag,
  type TypePlace,
  type TypeWalk,
  type Written,
} from './type-walk.js';
import { anyOf, orNull } from './write-union.js';

/** `T[]`, `readonly T[]`, `Array<T>`. */
export function writeArray({ type, node, path }: TypePlace, walk: TypeWalk): Written {
  const [item] = walk.view.typeArguments(type);
  if (item === undefined) return { schema: { type: 'array' } };
  const items = writeItem({ type: item, node: node && itemNode(node, walk), path: `${path}[]` }, walk);
  return { schema: { type: 'array', ...(Object.keys(items).length === 0 ? {} : { items }) } };
}

/** `JSON.stringify` writes `null` where a list has a hole. */
export function writeItem(place: TypePlace, walk: TypeWalk): DescribedSchema {
  const schema = writeSchema(place, walk);
  const hasHoles = walk.direction === 'out' && admitsUndefined(walk, place.type);
  const isNullable = definedParts(walk, place.type).some((part) => hasFlag(walk, part, 'Null'));
  return hasHoles && !isNullable ? orNull(schema) : schema;
}

function itemNode(node: SyntaxNode, walk: TypeWalk): SyntaxNode | undefined {
  const { syntaxKinds } = walk.view;
  if (node.kind === syntaxKinds.ArrayType) return node.elementType;
  if (node.kind === syntaxKinds.TypeOperator) return node.type && itemNode(node.type, walk);
  if (node.kind === syntaxKinds.ParenthesizedType) return node.type && itemNode(node.type, walk);
  return node.kind === syntaxKinds.TypeReference ? node.typeArguments?.[0] : undefined;
}

/** A tuple. What comes after a rest element may be any of the types from there on: JSON Schema cannot say more. */
export function writeTuple({ type, node, path }: TypePlace, walk: TypeWalk): Written {
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
