import { docKeywords } from '../comments/doc-comment.js';
import type { SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
import { aliasDeclaration, type DeclaredPart, declaredOrder } from './declared-order.js';
import { anyOf, commentOf, describeSchema, orNull, settleSchema } from './finish-schema.js';
import { literalSchema, templatePattern } from './literal-schema.js';
import { guarded, isStandard } from './standard-type.js';
import { definedParts, fault, hasFlag, type TypePlace, TypeWalk, type Written } from './type-walk.js';
import { writeObjectType } from './write-object-type.js';

/** The schema of a type. `undefined` among its values is the caller's business: JSON has none. */
export function writeType(place: TypePlace, walk: TypeWalk): Written {
  const { type, path } = place;
  const node = place.node && isTelling(place.node, type, walk) ? place.node : undefined;
  const alias = node && aliasDeclaration(walk.view, node);
  if (alias !== undefined) {
    const comment = commentOf(walk.view, alias);
    for (const problem of docKeywords(comment).problems) fault(walk, path, { problem });
    return describeSchema(writeType({ ...place, node: alias.type }, walk), comment);
  }
  const parts = definedParts(walk, type);
  const [only] = parts;
  if (only === undefined) return writeNothing(place, walk);
  if (parts.length === 1) return writeOne({ ...place, type: only, node }, walk);
  return guarded({ key: keyOf(parts), type, path }, walk, () => writeUnion(parts, { ...place, node }, walk));
}

/** Whether a node says more of a type than the type itself: an order, an alias, the parts of a list. */
function isTelling(node: SyntaxNode, type: TypeHandle, walk: TypeWalk): boolean {
  const { UnionType, TypeReference, ArrayType, TupleType, TypeOperator, ParenthesizedType } =
    walk.view.syntaxKinds;
  const kinds = [UnionType, TypeReference, ArrayType, TupleType, TypeOperator, ParenthesizedType];
  if (!kinds.includes(node.kind)) return false;
  // The node of a generic declaration is another type than that of its instance.
  return typeKey(walk, walk.view.typeFromNode(node)) === typeKey(walk, type);
}

function writeNothing({ type, path }: TypePlace, walk: TypeWalk): Written {
  if (walk.direction === 'out') return { schema: { type: 'null' } };
  return fault(walk, path, { problem: `has the type ${walk.view.textOf(type)}, which has no value in JSON` });
}

function writeOne(place: TypePlace, walk: TypeWalk): Written {
  const { type } = place;
  const { view } = walk;
  if (hasFlag(walk, type, 'Any', 'Unknown')) return writeAny(place, walk);
  if (hasFlag(walk, type, 'Null')) return { schema: { type: 'null' } };
  if (hasFlag(walk, type, 'StringLiteral', 'NumberLiteral', 'BigIntLiteral', 'BooleanLiteral')) {
    return literalSchema([type], walk);
  }
  if (hasFlag(walk, type, 'String', 'StringMapping')) return { schema: { type: 'string' } };
  if (hasFlag(walk, type, 'Number', 'Enum')) return { schema: { type: 'number' } };
  if (hasFlag(walk, type, 'Boolean')) return { schema: { type: 'boolean' } };
  if (hasFlag(walk, type, 'BigInt')) return literalSchema([], walk);
  if (hasFlag(walk, type, 'TemplateLiteral')) {
    return { schema: { type: 'string', pattern: templatePattern(type, walk) } };
  }
  if (hasFlag(walk, type, 'NonPrimitive')) return { schema: { type: 'object' } };
  if (hasFlag(walk, type, 'Intersection')) return writeIntersection(place, walk);
  if (hasFlag(walk, type, 'Object')) return writeObjectType(place, walk);
  return unsayable(place, walk, view.textOf(type));
}

function writeAny({ type, path }: TypePlace, walk: TypeWalk): Written {
  if (walk.direction === 'in') {
    walk.warnings.push({ path, problem: `is ${walk.view.textOf(type)}: nothing is checked about it` });
  }
  return { schema: {} };
}

/** `string & { __brand: 'Id' }`, `string[] & { … }`: the brand exists for the compiler only. */
function writeIntersection(place: TypePlace, walk: TypeWalk): Written {
  const parts = walk.view.constituents(place.type);
  const value =
    parts.find((part) => !hasFlag(walk, part, 'Object', 'Intersection', 'NonPrimitive')) ??
    parts.find((part) => isBranded(part, walk));
  if (value === undefined) return writeObjectType(place, walk);
  return writeOne({ ...place, type: value, node: undefined }, walk);
}

/** What an intersection with a brand is for JSON: a list, or a type of the language that has a form of its own. */
function isBranded(type: TypeHandle, walk: TypeWalk): boolean {
  const { view } = walk;
  if (view.isArray(type) || view.isTuple(type)) return true;
  const symbol = view.symbolOf(type);
  return symbol !== undefined && BRANDED.has(symbol.name) && isStandard(symbol, walk);
}

const BRANDED: ReadonlySet<string> = new Set([
  ...['Date', 'URL', 'Uint8Array', 'Buffer'],
  ...['Set', 'ReadonlySet', 'Map', 'ReadonlyMap'],
]);

function unsayable({ type, path }: TypePlace, walk: TypeWalk, text: string): Written {
  if (hasFlag(walk, type, 'Never')) return fault(walk, path, { problem: 'is never: no value fits it' });
  if (hasFlag(walk, type, 'ESSymbol', 'UniqueESSymbol')) {
    if (walk.direction === 'out') return { schema: { type: 'string' } };
    return fault(walk, path, { problem: 'is a symbol, which JSON does not have' });
  }
  return fault(walk, path, {
    problem: `is ${text}, a generic type that is not resolved here`,
    fix: 'a concrete type, or a class that extends the generic one with concrete types',
  });
}

/** A union: literals together as one `enum`, `null` as a second type, everything else as `anyOf`. */
function writeUnion(parts: readonly TypeHandle[], place: TypePlace, walk: TypeWalk): Written {
  const isNull = (type: TypeHandle) => hasFlag(walk, type, 'Null');
  const ordered = declaredOrder(parts, place.node, walk).filter(({ type }) => !isNull(type));
  const written = branchesOf(ordered, place, walk);
  const union = joined(written);
  if (!parts.some(isNull)) return union;
  return { ...union, schema: orNull(union.schema) };
}

function joined(branches: readonly Written[]): Written {
  const [only, second] = branches;
  if (only !== undefined && second === undefined) return only;
  return { schema: anyOf(branches.map(settleSchema)) };
}

function branchesOf(ordered: readonly DeclaredPart[], place: TypePlace, walk: TypeWalk): readonly Written[] {
  const isBigInt = (type: TypeHandle) => typeof walk.view.literalOf(type) === 'bigint';
  const truths = ordered.filter(({ type }) => hasFlag(walk, type, 'BooleanLiteral'));
  const isBoolean = truths.length === 2;
  const isLiteral = ({ type }: DeclaredPart) =>
    walk.view.literalOf(type) !== undefined &&
    !isBigInt(type) &&
    !(isBoolean && hasFlag(walk, type, 'BooleanLiteral'));
  const literals = ordered.filter(isLiteral);
  const digits = ordered.filter(({ type }) => isBigInt(type));
  const branches: Written[] = [];
  for (const part of ordered) {
    if (part === literals[0]) branches.push(literalSchema(typesOf(literals), walk));
    else if (part === digits[0]) branches.push(literalSchema(typesOf(digits), walk));
    else if (isBoolean && part === truths[0]) branches.push({ schema: { type: 'boolean' } });
    else if (!literals.includes(part) && !digits.includes(part) && !(isBoolean && truths.includes(part))) {
      branches.push(walk.write({ ...part, path: place.path }));
    }
  }
  return branches;
}

function typesOf(parts: readonly DeclaredPart[]): readonly TypeHandle[] {
  return parts.map(({ type }) => type);
}

/** The same for the same type, whether or not `undefined` is added to it. */
function typeKey(walk: Pick<TypeWalk, 'view'>, type: TypeHandle): string {
  return keyOf(definedParts(walk, type));
}

/** The same for the same types in any order. */
function keyOf(types: readonly TypeHandle[]): string {
  return types
    .map(({ id }) => id)
    .sort((a, b) => a - b)
    .join('|');
}
