import { BIGINT_DIGITS } from '../../../tools/schema/value-type.js';
import type { CompilerView, SourceText, SyntaxNode, TypeHandle } from '../compiler/load-compiler.js';
import { commentOf } from './finish-schema.js';
import {
  CodeReference,
  declarationOf,
  hasFlag,
  isUnion,
  NOTES,
  type TypeWalk,
  type WithView,
  type WrittenSchema,
} from './type-walk.js';

const BIGINT = new CodeReference('BigInt');

/** One or several literal values; without any, all big integers. In JSON, big integers are strings of digits. */
export function literalSchema(types: readonly TypeHandle[], walk: TypeWalk): WrittenSchema {
  const values = types.map((type) => walk.view.literalOf(type));
  const found = enumNotes(types, walk);
  const notes = found.length > 0 ? { [NOTES]: found } : {};
  if (values.length === 0 || values.some((value) => typeof value === 'bigint'))
    return { ...bigIntSchema(values, walk), ...notes };
  const kinds = new Set(values.map((value) => typeof value));
  const [kind] = kinds;
  const description = enumWords(types, walk);
  return {
    ...(kinds.size === 1 ? { type: kind } : {}),
    ...(values.length === 1 ? { const: values[0] } : { enum: values }),
    ...(description ? { description } : {}),
    ...notes,
  };
}

/** The comment of an enum, if all its members are included. */
function enumWords(types: readonly TypeHandle[], walk: TypeWalk): string | undefined {
  const [member, ...others] = types.map((type) => enumMember(type, walk));
  const declaration = member?.parent;
  if (declaration?.members?.length !== types.length) return undefined;
  if (others.some((other) => other?.parent !== declaration)) return undefined;
  return commentOf(walk.view, declaration)?.summary;
}

function bigIntSchema(values: readonly unknown[], walk: TypeWalk): WrittenSchema {
  const digits = values.map(String);
  const revived = walk.direction === 'in' ? { instanceOf: BIGINT } : {};
  if (digits.length === 0) return { type: 'string', pattern: BIGINT_DIGITS, ...revived };
  return { type: 'string', ...(digits.length === 1 ? { const: digits[0] } : { enum: digits }), ...revived };
}

/** A default value in an object, because `null` is a possible value. */
interface DefaultValue {
  readonly value: unknown;
}

/**
 * The value of an initializer, if it is known and can be JSON: literals, arrays and objects of them, enum members, and
 * constants with a literal type. `undefined` for other expressions.
 */
export function literalDefault(node: SyntaxNode, view: CompilerView): DefaultValue | undefined {
  const { syntaxKinds: kinds } = view;
  switch (node.kind) {
    case kinds.StringLiteral:
    case kinds.NoSubstitutionTemplateLiteral:
      return { value: node.text };
    case kinds.NumericLiteral:
      return { value: Number(node.text) };
    case kinds.BigIntLiteral:
      return { value: BigInt((node.text ?? '0').replace(/n$/, '')).toString() };
    case kinds.TrueKeyword:
      return { value: true };
    case kinds.FalseKeyword:
      return { value: false };
    case kinds.NullKeyword:
      return { value: null };
    case kinds.ParenthesizedExpression:
    case kinds.AsExpression:
    case kinds.SatisfiesExpression:
    case kinds.TypeAssertionExpression:
      return node.expression && literalDefault(node.expression, view);
    case kinds.PrefixUnaryExpression:
      return signed(node, view);
    case kinds.ArrayLiteralExpression:
      return listDefault(node, view);
    case kinds.ObjectLiteralExpression:
      return objectDefault(node, view);
    default:
      return constantDefault(node, view);
  }
}

function signed(node: SyntaxNode, view: CompilerView): DefaultValue | undefined {
  const operand = node.operand && literalDefault(node.operand, view);
  if (operand === undefined) return undefined;
  const { MinusToken, PlusToken, ExclamationToken } = view.syntaxKinds;
  if (node.operator === ExclamationToken) return { value: !operand.value };
  const isBigInt = node.operand?.kind === view.syntaxKinds.BigIntLiteral;
  if (node.operator === MinusToken && isBigInt) return { value: `-${operand.value}` };
  if (typeof operand.value !== 'number') return undefined;
  if (node.operator === MinusToken) return { value: -operand.value };
  return node.operator === PlusToken ? operand : undefined;
}

function listDefault(node: SyntaxNode, view: CompilerView): DefaultValue | undefined {
  const values: unknown[] = [];
  for (const element of node.elements ?? []) {
    const literal = literalDefault(element, view);
    if (literal === undefined) return undefined;
    values.push(literal.value);
  }
  return { value: values };
}

function objectDefault(node: SyntaxNode, view: CompilerView): DefaultValue | undefined {
  const entries: [string, unknown][] = [];
  for (const property of node.properties ?? []) {
    const isPlain = property.kind === view.syntaxKinds.PropertyAssignment;
    const name = property.name?.text;
    const literal = isPlain && property.initializer ? literalDefault(property.initializer, view) : undefined;
    if (name === undefined || name === '__proto__' || literal === undefined) return undefined;
    entries.push([name, literal.value]);
  }
  return { value: Object.fromEntries(entries) };
}

/** `OrderStatus.Open`, `DEFAULT_LIMIT`: the type of a constant is its value. */
function constantDefault(node: SyntaxNode, view: CompilerView): DefaultValue | undefined {
  const { Identifier, PropertyAccessExpression, ElementAccessExpression } = view.syntaxKinds;
  if (![Identifier, PropertyAccessExpression, ElementAccessExpression].includes(node.kind)) return undefined;
  const value = view.literalOf(view.typeAt(node));
  if (value === undefined) return undefined;
  return { value: typeof value === 'bigint' ? value.toString() : value };
}

/** Notes from the comments of enum members: "- `open`: not yet paid". */
function enumNotes(types: readonly TypeHandle[], walk: TypeWalk): readonly string[] {
  return types.flatMap((type) => {
    const member = enumMember(type, walk);
    const said = member && commentOf(walk.view, member)?.summary;
    return said ? [`- \`${walk.view.literalOf(type)}\`: ${said}`] : [];
  });
}

/** The output of `String(value)` for numbers, which TypeScript compares with. */
const NUMBER = '(?:-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:e[+-][0-9]+)?|-?Infinity|NaN)';
const BIGINT_TEXT = '-?(?:0|[1-9][0-9]*)';
const ANY = '[\\s\\S]*';

/** The pattern of a template literal type, `` `cus_${number}` ``. */
export function templatePattern(type: TypeHandle, walk: TypeWalk): string {
  return `^${bodyOf(type, walk)}$`;
}

/** The pattern of an object's keys: names, and matches of template literal types. */
export function keyPattern(
  templates: readonly TypeHandle[],
  names: readonly string[],
  walk: TypeWalk,
): string {
  const keys = [...templates.map((type) => bodyOf(type, walk)), ...names.map(escapeText)];
  return keys.length === 1 ? `^${keys[0]}$` : `^(?:${keys.join('|')})$`;
}

function bodyOf(type: TypeHandle, walk: TypeWalk): string {
  const { texts, types } = walk.view.templateOf(type);
  return texts
    .map((text, index) => escapeText(text) + (types[index] === undefined ? '' : partOf(types[index], walk)))
    .join('');
}

function partOf(type: TypeHandle, walk: TypeWalk): string {
  if (hasFlag(walk, type, 'TemplateLiteral')) return bodyOf(type, walk);
  if (hasFlag(walk, type, 'Number')) return NUMBER;
  if (hasFlag(walk, type, 'BigInt')) return BIGINT_TEXT;
  const literal = walk.view.literalOf(type);
  if (literal !== undefined) return escapeText(String(literal));
  if (!hasFlag(walk, type, 'Union')) return ANY;
  const parts = walk.view.constituents(type).map((part) => partOf(part, walk));
  return `(?:${parts.sort().join('|')})`;
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** A part of a union as its author wrote it. */
export interface DeclaredPart {
  readonly type: TypeHandle;
  readonly node?: SyntaxNode;
}

/**
 * The parts of a union in the author's order, read from the source, because each compiler sorts unions differently.
 * Parts that are not in the source (`keyof T`, `Exclude<…>`) are sorted by an enum's members, or by value.
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
  if (alias?.type !== undefined && isUnion(walk, type)) return partsOf(alias.type, walk);
  if (hasFlag(walk, type, 'Union'))
    return byValue(view.constituents(type), walk).map((part) => ({ type: part }));
  return [{ type, node }];
}

function byValue(types: readonly TypeHandle[], walk: TypeWalk): readonly TypeHandle[] {
  return sortedBy(types, (type) => sortKey(type, walk));
}

/** Sorts by keys whose parts count from left to right. */
export function sortedBy<Item>(items: readonly Item[], keyOf: (item: Item) => SortKey): readonly Item[] {
  const keyed = items.map((item) => ({ item, key: keyOf(item) }));
  return keyed.sort((one, other) => compareKeys(one.key, other.key)).map(({ item }) => item);
}

type SortKey = readonly (string | number)[];

function sortKey(type: TypeHandle, walk: TypeWalk): SortKey {
  const member = enumMember(type, walk);
  if (member !== undefined) return [0, orderedPath(walk.view.fileOf(member)), member.pos];
  const literal = walk.view.literalOf(type);
  if (typeof literal === 'number') return [1, literal];
  if (typeof literal === 'bigint') return [2, Number(literal)];
  if (literal !== undefined) return [3, String(literal)];
  const declaration = declarationOf(type, walk.view);
  // A generic type occurs once per type argument; only the text distinguishes them.
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
 * A sort key for a file that is the same on every machine, wherever the project, its packages and the compiler are
 * installed. The language comes first, then packages, then the project.
 */
export function orderedPath({ path, isDeclaration }: Pick<SourceText, 'path' | 'isDeclaration'>): string {
  const language = LANGUAGE_FILE.exec(path)?.[1];
  if (isDeclaration && language !== undefined) return `0 ${language}`;
  const [inProject, ...inPackages] = path.split('/node_modules/');
  return inPackages.length > 0 ? `1 ${inPackages.at(-1)}` : `2 ${inProject}`;
}

/** The declaration of the alias in a type node; `undefined` for generic aliases, whose node is another type. */
export function aliasDeclaration(view: CompilerView, node: SyntaxNode): SyntaxNode | undefined {
  if (node.kind === view.syntaxKinds.ParenthesizedType) return node.type && aliasDeclaration(view, node.type);
  if (node.kind !== view.syntaxKinds.TypeReference || node.typeName === undefined) return undefined;
  if ((node.typeArguments ?? []).length > 0) return undefined;
  const symbol = view.symbolAt(node.typeName);
  const declaration = symbol && view.declarations(view.unalias(symbol))[0];
  return declaration?.kind === view.syntaxKinds.TypeAliasDeclaration ? declaration : undefined;
}

/** The declaration of an enum member; its parent is the enum. */
function enumMember(type: TypeHandle, walk: WithView): SyntaxNode | undefined {
  if (!hasFlag(walk, type, 'EnumLiteral')) return undefined;
  const declaration = declarationOf(type, walk.view);
  if (declaration?.kind === walk.view.syntaxKinds.EnumMember) return declaration;
  // An enum with one member has the type of the enum itself.
  const [member, second] = declaration?.members ?? [];
  return second === undefined ? member : undefined;
}
