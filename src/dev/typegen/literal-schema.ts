import { BIGINT_DIGITS } from '../../tools/schema/value-type.js';
import { commentOf } from './doc-comment.js';
import type { CompilerView, SyntaxNode, TypeHandle } from './load-compiler.js';
import { CodeReference, NOTES, type WrittenSchema } from './written-schema.js';

const BIGINT = new CodeReference('BigInt');

/**
 * One or several literal values; without any, all big integers. In JSON, big integers are strings of digits, of which
 * arguments (`in`) are hydrated.
 */
export function literalSchema(
  types: readonly TypeHandle[],
  view: CompilerView,
  direction: 'in' | 'out',
): WrittenSchema {
  const values = types.map((type) => view.literalOf(type));
  const members = types.map((type) => enumMember(type, view));
  const notes = members.flatMap((member, index) => {
    const said = member && commentOf(view, member)?.summary;
    return said ? [`- \`${values[index]}\`: ${said}`] : [];
  });
  const more = notes.length > 0 ? { [NOTES]: notes } : {};
  const isBigInt = values.length === 0 || values.some((value) => typeof value === 'bigint');
  const shown = isBigInt ? values.map(String) : values;
  const choice = shown.length === 1 ? { const: shown[0] } : { enum: shown };
  if (isBigInt) {
    const digits = shown.length === 0 ? { pattern: BIGINT_DIGITS } : choice;
    return { type: 'string', ...digits, ...(direction === 'in' ? { instanceOf: BIGINT } : {}), ...more };
  }
  const [kind, ...otherKinds] = new Set(values.map((value) => typeof value));
  // The comment of an enum, if all its members are included.
  const declaration = members[0]?.parent;
  const isWhole =
    declaration?.members?.length === types.length &&
    members.every((member) => member?.parent === declaration);
  const description = isWhole ? commentOf(view, declaration)?.summary : undefined;
  return {
    ...(otherKinds.length === 0 ? { type: kind } : {}),
    ...choice,
    ...(description ? { description } : {}),
    ...more,
  };
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
    case kinds.ArrayLiteralExpression: {
      const items = (node.elements ?? []).map((element) => literalDefault(element, view));
      return items.includes(undefined) ? undefined : { value: items.map((item) => item?.value) };
    }
    case kinds.ObjectLiteralExpression: {
      const entries: [string, unknown][] = [];
      for (const { kind, name, initializer } of node.properties ?? []) {
        const isPlain = kind === kinds.PropertyAssignment && initializer !== undefined;
        const literal = isPlain ? literalDefault(initializer, view) : undefined;
        const key = name?.text ?? '__proto__';
        if (key === '__proto__' || literal === undefined) return undefined;
        entries.push([key, literal.value]);
      }
      return { value: Object.fromEntries(entries) };
    }
    case kinds.Identifier:
    case kinds.PropertyAccessExpression:
    case kinds.ElementAccessExpression: {
      // `OrderStatus.Open`, `DEFAULT_LIMIT`: the type of a constant is its value.
      const value = view.literalOf(view.typeAt(node));
      if (value === undefined) return undefined;
      return { value: typeof value === 'bigint' ? value.toString() : value };
    }
    default:
      return undefined;
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

/** The output of `String(value)` for numbers, which TypeScript compares with. */
const NUMBER = '(?:-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:e[+-][0-9]+)?|-?Infinity|NaN)';
const BIGINT_TEXT = '-?(?:0|[1-9][0-9]*)';
const ANY = '[\\s\\S]*';

/** The pattern of a template literal type, `` `cus_${number}` ``. */
export function templatePattern(type: TypeHandle, view: CompilerView): string {
  return `^${bodyOf(type, view)}$`;
}

/** The pattern of an object's keys: names, and matches of template literal types. */
export function keyPattern(
  templates: readonly TypeHandle[],
  names: readonly string[],
  view: CompilerView,
): string {
  const keys = [...templates.map((type) => bodyOf(type, view)), ...names.map(escapeText)];
  return keys.length === 1 ? `^${keys[0]}$` : `^(?:${keys.join('|')})$`;
}

function bodyOf(type: TypeHandle, view: CompilerView): string {
  const { texts, types } = view.templateOf(type);
  return texts
    .map((text, index) => escapeText(text) + (types[index] === undefined ? '' : partOf(types[index], view)))
    .join('');
}

function partOf(type: TypeHandle, view: CompilerView): string {
  if (view.hasFlag(type, 'TemplateLiteral')) return bodyOf(type, view);
  if (view.hasFlag(type, 'Number')) return NUMBER;
  if (view.hasFlag(type, 'BigInt')) return BIGINT_TEXT;
  const literal = view.literalOf(type);
  if (literal !== undefined) return escapeText(String(literal));
  if (!view.hasFlag(type, 'Union')) return ANY;
  const parts = view.constituents(type).map((part) => partOf(part, view));
  return `(?:${parts.sort().join('|')})`;
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** A part of a union as its author wrote it. */
interface DeclaredPart {
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
  view: CompilerView,
): readonly DeclaredPart[] {
  const wanted = new Map(parts.map((part) => [part.id, part]));
  const ordered = node ? partsOf(node, view).filter(({ type }) => wanted.delete(type.id)) : [];
  return [...ordered, ...byValue([...wanted.values()], view).map((type) => ({ type }))];
}

function partsOf(node: SyntaxNode, view: CompilerView): readonly DeclaredPart[] {
  if (node.kind === view.syntaxKinds.UnionType)
    return (node.types ?? []).flatMap((item) => partsOf(item, view));
  if (node.kind === view.syntaxKinds.ParenthesizedType && node.type) return partsOf(node.type, view);
  const alias = aliasDeclaration(view, node);
  const type = view.typeFromNode(node);
  if (alias?.type !== undefined && view.isUnion(type)) return partsOf(alias.type, view);
  if (view.hasFlag(type, 'Union'))
    return byValue(view.constituents(type), view).map((part) => ({ type: part }));
  return [{ type, node }];
}

function byValue(types: readonly TypeHandle[], view: CompilerView): readonly TypeHandle[] {
  return sortedBy(types, (type) => {
    const member = enumMember(type, view);
    if (member !== undefined) return [0, orderedPath(view.fileOf(member)), member.pos];
    const literal = view.literalOf(type);
    if (typeof literal === 'number') return [1, literal];
    if (typeof literal === 'bigint') return [2, Number(literal)];
    if (literal !== undefined) return [3, String(literal)];
    const declaration = view.declarationOf(type);
    // A generic type occurs once per type argument; only the text distinguishes them.
    if (declaration === undefined) return [4, view.textOf(type)];
    return [5, orderedPath(view.fileOf(declaration)), declaration.pos, view.textOf(type)];
  });
}

/** Sorts by keys whose parts count from left to right. */
export function sortedBy<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => readonly (string | number)[],
): readonly Item[] {
  const keyed = items.map((item) => ({ item, key: keyOf(item) }));
  keyed.sort(({ key: one }, { key: other }) => {
    for (const [index, value] of one.entries()) {
      const against = other[index];
      if (against === undefined) return 1;
      if (value !== against) return value < against ? -1 : 1;
    }
    return 0;
  });
  return keyed.map(({ item }) => item);
}

const LANGUAGE_FILE = /(?:^|\/)(lib\.[\w.]+\.d\.ts)$/;

/**
 * A sort key for a file that is the same on every machine, wherever the project, its packages and the compiler are
 * installed. The language comes first, then packages, then the project.
 */
export function orderedPath(file: { readonly path: string; readonly isDeclaration: boolean }): string {
  const { path, isDeclaration } = file;
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
function enumMember(type: TypeHandle, view: CompilerView): SyntaxNode | undefined {
  if (!view.hasFlag(type, 'EnumLiteral')) return undefined;
  const declaration = view.declarationOf(type);
  if (declaration?.kind === view.syntaxKinds.EnumMember) return declaration;
  // An enum with one member has the type of the enum itself.
  const [member, second] = declaration?.members ?? [];
  return second === undefined ? member : undefined;
}
