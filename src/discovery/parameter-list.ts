import type { Expression, Pattern } from 'acorn';
import { loadAcorn } from './load-acorn.cjs';

/** One parameter as the method's own source spells it. */
export interface ParsedParameter {
  /** Absent for a destructured parameter, which has no name. */
  readonly name?: string;
  readonly isRest: boolean;
  readonly hasDefault: boolean;
  /** The default, where it is a literal. */
  readonly defaultValue?: LiteralValue;
}

/**
 * The parameter list of a function, read from its source; `undefined` where there is none to read (native
 * and bound functions). Only the list is parsed, never the body: bodies are long and of no interest.
 */
export function parameterList(fn: (...args: never[]) => unknown): readonly ParsedParameter[] | undefined {
  const source = Function.prototype.toString.call(fn);
  const plain = plainList(source);
  if (plain !== undefined) return plain;
  try {
    const list = listSource(source);
    return list === undefined ? undefined : parseList(list).map(readParameter);
  } catch {
    return undefined;
  }
}

/** The beginning of a method; most lists behind it are names and plain literals, which need no parser. */
const METHOD_HEAD = /^(?:async\s+)?\*?\s*[\w$]+\s*\(\s*/;
const PLAIN_PARAMETER =
  /([A-Za-z_$][\w$]*)\s*(?:=\s*(-?(?:0|[1-9]\d*)(?:\.\d+)?|true|false|null|'[^'\\\n\r]*'|"[^"\\\n\r]*")\s*)?(?:,\s*|(?=\)))/y;
const METHOD_BODY = /\)\s*\{/y;

/** The parameters of a method whose list is plain; `undefined` for any other. */
function plainList(source: string): readonly ParsedParameter[] | undefined {
  const head = METHOD_HEAD.exec(source);
  if (head === null || source.endsWith('[native code] }')) return undefined;
  const list: ParsedParameter[] = [];
  let at = head[0].length;
  for (;;) {
    PLAIN_PARAMETER.lastIndex = at;
    const [, name, literal] = PLAIN_PARAMETER.exec(source) ?? [];
    if (name === undefined) break;
    at = PLAIN_PARAMETER.lastIndex;
    const hasDefault = literal !== undefined;
    list.push({
      name,
      isRest: false,
      hasDefault,
      ...(hasDefault ? { defaultValue: { value: plainValue(literal) } } : {}),
    });
  }
  METHOD_BODY.lastIndex = at;
  return METHOD_BODY.test(source) ? list : undefined;
}

function plainValue(literal: string): unknown {
  return /^['"]/.test(literal) ? literal.slice(1, -1) : JSON.parse(literal);
}

function listSource(source: string): string | undefined {
  if (/\{\s*\[native code\]\s*\}$/.test(source)) return undefined;
  const { tokenizer, tokTypes } = loadAcorn();
  let depth = 0;
  let brackets = 0;
  let start = -1;
  for (const token of tokenizer(source, { ecmaVersion: 'latest' })) {
    if (start < 0 && token.type === tokTypes.arrow)
      return source.slice(0, token.start).replace(/^async\s/, '');
    // A computed method name, `['a' + b(1)](x)`, has parentheses of its own.
    if (start < 0 && token.type === tokTypes.bracketL) brackets += 1;
    if (start < 0 && token.type === tokTypes.bracketR) brackets -= 1;
    if (brackets > 0) continue;
    if (token.type === tokTypes.parenL) {
      depth += 1;
      if (start < 0) start = token.end;
    } else if (token.type === tokTypes.parenR) {
      depth -= 1;
      if (depth === 0) return source.slice(start, token.start);
    }
  }
  return undefined;
}

function parseList(list: string): readonly Pattern[] {
  // A method, so that a default may say `super`; on a line of its own, in case the list ends in a comment.
  const node = loadAcorn().parseExpressionAt(`({_(${list}\n){}})`, 0, {
    ecmaVersion: 'latest',
    checkPrivateFields: false,
  });
  const object = node.type === 'ParenthesizedExpression' ? node.expression : node;
  const property = object.type === 'ObjectExpression' ? object.properties[0] : undefined;
  return property?.type === 'Property' && property.value.type === 'FunctionExpression'
    ? property.value.params
    : [];
}

function readParameter(pattern: Pattern): ParsedParameter {
  if (pattern.type === 'AssignmentPattern') {
    return {
      ...readParameter(pattern.left),
      hasDefault: true,
      defaultValue: literalValue(pattern.right as Expression),
    };
  }
  if (pattern.type === 'RestElement') return { ...readParameter(pattern.argument), isRest: true };
  return { name: pattern.type === 'Identifier' ? pattern.name : undefined, isRest: false, hasDefault: false };
}

/** The value of a literal; boxed, because `null` is a value too. */
interface LiteralValue {
  readonly value: unknown;
}

/** The value of an expression that is a literal through and through; `undefined` for any other. */
function literalValue(node: Expression): LiteralValue | undefined {
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
