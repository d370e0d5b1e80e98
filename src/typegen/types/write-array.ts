import type { SyntaxNode } from '../compiler/syntax-node.js';
import { anyOf } from './any-of.js';
import type { DescribedSchema } from './described-schema.js';
import { writeSchema } from './finish-schema.js';
import { orNull } from './or-null.js';
import {
  admitsUndefined,
  definedParts,
  hasFlag,
  type TypePlace,
  type TypeWalk,
  type Written,
} from './type-walk.js';

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
