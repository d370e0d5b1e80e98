import { BIGINT_DIGITS } from '../../schema/value-type.js';
import type { CompilerView, SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
import { enumMember } from './declared-order.js';
import { commentOf } from './finish-schema.js';
import { CodeReference, type DescribedSchema, hasFlag, type TypeWalk, type Written } from './type-walk.js';

const BIGINT = new CodeReference('BigInt');

/** One value, or one of several; without any, any big integer. Big integers are digits in JSON. */
export function literalSchema(types: readonly TypeHandle[], walk: TypeWalk): Written {
  const values = types.map((type) => walk.view.literalOf(type));
  const notes = enumNotes(types, walk);
  if (values.length === 0 || values.some((value) => typeof value === 'bigint')) {
    return { schema: bigIntSchema(values, walk), notes };
  }
  const kinds = new Set(values.map((value) => typeof value));
  const [kind] = kinds;
  const type = kinds.size === 1 ? { type: kind } : {};
  const schema = values.length === 1 ? { ...type, const: values[0] } : { ...type, enum: values };
  const description = enumWords(types, walk);
  return { schema: description ? { ...schema, description } : schema, notes };
}

/** What an enum says of itself, where all its members are meant. */
function enumWords(types: readonly TypeHandle[], walk: TypeWalk): string | undefined {
  const [member, ...others] = types.map((type) => enumMember(type, walk));
  const declaration = member?.parent;
  if (declaration?.members?.length !== types.length) return undefined;
  if (others.some((other) => other?.parent !== declaration)) return undefined;
  return commentOf(walk.view, declaration)?.summary;
}

function bigIntSchema(values: readonly unknown[], walk: TypeWalk): DescribedSchema {
  const digits = values.map(String);
  const revived = walk.direction === 'in' ? { instanceOf: BIGINT } : {};
  if (digits.length === 0) return { type: 'string', pattern: BIGINT_DIGITS, ...revived };
  return { type: 'string', ...(digits.length === 1 ? { const: digits[0] } : { enum: digits }), ...revived };
}

/** The value of a default, boxed because `null` is a value too. */
interface DefaultValue {
  readonly value: unknown;
}

/**
 * The value of an initialiser as JSON carries it: literals, arrays and objects of them, members of enums and
 * constants of a literal type. Nothing for an expression whose value is known at run time only.
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

/** What the members of an enum say about themselves: "- `open`: not yet paid". */
function enumNotes(types: readonly TypeHandle[], walk: TypeWalk): readonly string[] {
  return types.flatMap((type) => {
    const member = enumMember(type, walk);
    const said = member && commentOf(walk.view, member)?.summary;
    return said ? [`- \`${walk.view.literalOf(type)}\`: ${said}`] : [];
  });
}

/** What `String(value)` writes for numbers; TypeScript compares with that. */
const NUMBER = '(?:-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:e[+-][0-9]+)?|-?Infinity|NaN)';
const BIGINT_TEXT = '-?(?:0|[1-9][0-9]*)';
const ANY = '[\\s\\S]*';

/** The pattern of a template literal type, `` `cus_${number}` ``. */
export function templatePattern(type: TypeHandle, walk: TypeWalk): string {
  return `^${bodyOf(type, walk)}$`;
}

/** The pattern of the keys of an object: names, and whatever fits one of the template literal types. */
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
  return `(?:${walk.view
    .constituents(type)
    .map((part) => partOf(part, walk))
    .sort()
    .join('|')})`;
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
