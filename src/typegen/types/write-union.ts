import { nullableSchema } from '../../schema/keywords.js';
import type { TypeHandle } from '../compiler/compiler-view.js';
import { type DeclaredPart, declaredOrder } from './declared-order.js';
import { settleSchema } from './finish-schema.js';
import { literalSchema } from './literal-schema.js';
import { type DescribedSchema, hasFlag, type TypePlace, type TypeWalk, type Written } from './type-walk.js';

/** A union: literals together as one `enum`, `null` as a second type, everything else as `anyOf`. */
export function writeUnion(parts: readonly TypeHandle[], place: TypePlace, walk: TypeWalk): Written {
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

/** Whatever one of the schemas lets through. Types that differ for TypeScript may be the same in JSON. */
export function anyOf(schemas: readonly DescribedSchema[]): DescribedSchema {
  const [only, ...others] = new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values();
  if (only === undefined || others.length === 0) return only ?? {};
  // A branch without constraints lets everything through.
  const isOpen = schemas.some((schema) => Object.keys(schema).length === 0);
  return isOpen ? {} : { anyOf: [only, ...others] };
}

/** The schema, or `null`; a constant beside `null` is a list of two. */
export function orNull({ const: only, ...others }: DescribedSchema): DescribedSchema {
  return nullableSchema(only === undefined ? others : { ...others, enum: [only] });
}
