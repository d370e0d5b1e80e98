import type { Expression } from 'acorn';

/** The value of a literal; boxed, because `null` is a value too. */
export interface LiteralValue {
  readonly value: unknown;
}

/** The value of an expression that is a literal through and through; `undefined` for any other. */
export function literalValue(node: Expression): LiteralValue | undefined {
  switch (node.type) {
    case 'Literal':
      return isPlain(node.value) ? { value: node.value } : undefined;
    case 'TemplateLiteral':
      return node.expressions.length === 0 ? { value: node.quasis[0]?.value.cooked } : undefined;
    case 'UnaryExpression':
      return unaryValue(node.operator, literalValue(node.argument));
    case 'ArrayExpression':
      return arrayValue(node.elements);
    case 'ObjectExpression':
      return objectValue(node.properties);
    case 'ParenthesizedExpression':
      return literalValue(node.expression);
    case 'SequenceExpression': {
      // Coverage tools turn `limit = 10` into `limit = (counter(), 10)`.
      const last = node.expressions.at(-1);
      return last && literalValue(last);
    }
    default:
      return undefined;
  }
}

function isPlain(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

function unaryValue(operator: string, operand: LiteralValue | undefined): LiteralValue | undefined {
  if (operand === undefined) return undefined;
  if (operator === '-' && typeof operand.value === 'number') return { value: -operand.value };
  if (operator === '+' && typeof operand.value === 'number') return operand;
  // Minifiers write `!0` for `true`.
  if (operator === '!') return { value: !operand.value };
  return undefined;
}

type Elements = Extract<Expression, { type: 'ArrayExpression' }>['elements'];
type Properties = Extract<Expression, { type: 'ObjectExpression' }>['properties'];

function arrayValue(elements: Elements): LiteralValue | undefined {
  const values: unknown[] = [];
  for (const element of elements) {
    const literal = element && element.type !== 'SpreadElement' ? literalValue(element) : undefined;
    if (literal === undefined) return undefined;
    values.push(literal.value);
  }
  return { value: values };
}

function objectValue(properties: Properties): LiteralValue | undefined {
  const entries: [string, unknown][] = [];
  for (const property of properties) {
    if (property.type !== 'Property' || property.computed) return undefined;
    const name = propertyName(property.key);
    const literal = literalValue(property.value);
    if (name === undefined || name === '__proto__' || literal === undefined) return undefined;
    entries.push([name, literal.value]);
  }
  return { value: Object.fromEntries(entries) };
}

function propertyName(key: Expression | { type: 'PrivateIdentifier' }): string | undefined {
  if (key.type === 'Identifier') return key.name;
  return key.type === 'Literal' ? String(key.value) : undefined;
}
