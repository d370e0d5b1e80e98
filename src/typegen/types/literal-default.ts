import type { CompilerView } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';

/** The value of a default, boxed because `null` is a value too. */
export interface DefaultValue {
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
