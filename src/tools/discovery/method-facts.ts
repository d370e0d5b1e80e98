import type { Expression, Pattern } from 'acorn';
import type { DescribedParameter, DescribedTool } from '../../core/contract/declaration.js';
import { ToolContext } from '../../core/contract/tool-context.js';
import type { InheritedMethod, ParameterRecord } from '../../core/metadata/class-record.js';
import type { ValueModel } from '../schema/value-type.js';
import { designToken, fromGenerated } from '../schema/value-type.js';
import { loadAcorn } from './load-acorn.cjs';

/** A parameter in the method's source. */
interface ParsedParameter {
  /** Absent for a destructured parameter. */
  readonly name?: string;
  readonly isRest: boolean;
  readonly hasDefault: boolean;
  /** The default, if it is a literal. */
  readonly defaultValue?: LiteralValue;
}

/**
 * The parameter list of a function, read from its source; `undefined` for native and bound functions. Only the list
 * is parsed, not the body.
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

/** The beginning of a method. Most parameter lists contain only names and simple literals, which need no parser. */
const METHOD_HEAD = /^(?:async\s+)?\*?\s*[\w$]+\s*\(\s*/;
const PLAIN_PARAMETER =
  /([A-Za-z_$][\w$]*)\s*(?:=\s*(-?(?:0|[1-9]\d*)(?:\.\d+)?|true|false|null|'[^'\\\n\r]*'|"[^"\\\n\r]*")\s*)?(?:,\s*|(?=\)))/y;
const METHOD_BODY = /\)\s*\{/y;

/** The parameters of a method with a simple list; `undefined` for others. */
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
      ...(hasDefault
        ? { defaultValue: { value: /^['"]/.test(literal) ? literal.slice(1, -1) : JSON.parse(literal) } }
        : {}),
    });
  }
  METHOD_BODY.lastIndex = at;
  return METHOD_BODY.test(source) ? list : undefined;
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
    // A computed method name, `['a' + b(1)](x)`, has its own parentheses.
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
  // Parsed as a method, so that a default may use `super`; on its own line, because the list may end in a comment.
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

/** The value of a literal in a box, because `null` is a value too. */
interface LiteralValue {
  readonly value: unknown;
}

/** The value of an expression that consists only of literals; `undefined` for others. */
function literalValue(node: Expression): LiteralValue | undefined {
  switch (node.type) {
    case 'Literal': {
      const isPlain = node.value === null || ['string', 'number', 'boolean'].includes(typeof node.value);
      return isPlain ? { value: node.value } : undefined;
    }
    case 'TemplateLiteral':
      return node.expressions.length === 0 ? { value: node.quasis[0]?.value.cooked } : undefined;
    case 'UnaryExpression': {
      const operand = literalValue(node.argument);
      if (operand === undefined) return undefined;
      // Minifiers write `!0` for `true`.
      if (node.operator === '!') return { value: !operand.value };
      if (typeof operand.value !== 'number') return undefined;
      if (node.operator === '-') return { value: -operand.value };
      return node.operator === '+' ? operand : undefined;
    }
    case 'ArrayExpression': {
      const values: unknown[] = [];
      for (const element of node.elements) {
        const literal = element && element.type !== 'SpreadElement' ? literalValue(element) : undefined;
        if (literal === undefined) return undefined;
        values.push(literal.value);
      }
      return { value: values };
    }
    case 'ObjectExpression': {
      const entries: [string, unknown][] = [];
      for (const property of node.properties) {
        if (property.type !== 'Property' || property.computed) return undefined;
        const { key } = property;
        const name =
          key.type === 'Identifier' ? key.name : key.type === 'Literal' ? String(key.value) : undefined;
        const literal = literalValue(property.value);
        if (name === undefined || name === '__proto__' || literal === undefined) return undefined;
        entries.push([name, literal.value]);
      }
      return { value: Object.fromEntries(entries) };
    }
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

/** All facts about one parameter, from its decorators, its metadata and its source. */
export interface ParameterFacts {
  readonly index: number;
  readonly records: readonly ParameterRecord[];
  /** `design:paramtypes` at this position; `undefined` if the build tool emits none. */
  readonly designType: unknown;
  readonly parsed?: ParsedParameter;
  /** From the generated file. */
  readonly generated?: ValueModel;
}

/** The parameters of a method, or why they are unknown. */
export type MethodFacts =
  | {
      readonly ok: true;
      readonly parameters: readonly ParameterFacts[];
      /** The generated description that was used. */
      readonly generated?: DescribedTool;
      /** Why a generated description was not used; continues "it …". */
      readonly misfit?: string;
    }
  | { readonly ok: false; readonly problem: string };

const NO_RECORDS: readonly ParameterRecord[] = [];

/**
 * Collects the facts about a method's parameters without interpreting them. A generated description that matches the
 * method replaces source and metadata; if it does not match, it is ignored.
 */
export function methodFacts(
  { record, declaredIn }: InheritedMethod,
  method: (...args: never[]) => unknown,
  generated?: DescribedTool,
): MethodFacts {
  const { key, parameters: records } = record;
  const designTypes: readonly unknown[] | undefined = Reflect.getOwnMetadata(
    'design:paramtypes',
    declaredIn.prototype,
    key,
  );
  const list = parameterList(method);
  // A function that replaces a decorated method is a function expression and passes all arguments on.
  const isStandIn =
    list?.length === 1 &&
    list[0]?.isRest === true &&
    /^(?:async\s+)?(?:function\b|\()/.test(Function.prototype.toString.call(method));
  const parsed = isStandIn ? undefined : list;
  let decorated = 0;
  for (const index of records.keys()) decorated = Math.max(decorated, index + 1);
  const source: MethodSource = { designTypes, parsed, count: Math.max(method.length, decorated), decorated };
  const misfit = generated && misfitOf(generated, source);
  if (generated === undefined || misfit !== undefined) {
    const facts = factsFromSource(records, source, isStandIn);
    return facts.ok && misfit !== undefined ? { ...facts, misfit } : facts;
  }
  const parameters = generated.parameters.map((parameter, index) => ({
    index,
    records: records.get(index) ?? NO_RECORDS,
    ...factsFromGenerated(parameter, generated, designTypes?.[index]),
  }));
  return { ok: true, parameters, generated };
}

/** The facts about a method at run time. */
interface MethodSource {
  readonly designTypes?: readonly unknown[];
  readonly parsed?: readonly ParsedParameter[];
  /** The number of parameters, from its length and its decorators. */
  readonly count: number;
  /** The least number of parameters, from the last decorated one. */
  readonly decorated: number;
}

/** `isStandIn`: a decorator below `@Tool` has replaced the method by another function, whose source is useless. */
function factsFromSource(
  records: Records,
  { designTypes, parsed, count: least, decorated }: MethodSource,
  isStandIn: boolean,
): MethodFacts {
  const count = designTypes?.length ?? parsed?.length ?? least;
  const all = Math.max(count, decorated);
  // If all properties are named by hand, the source is not needed; a wrapper or minifier may have changed it.
  const isUsable = parsed !== undefined && parsed.length === count && decorated <= count;
  if (parsed !== undefined && !isUsable && !areNamed(records, count, designTypes))
    return { ok: false, problem: `its source lists ${parsed.length} parameters, its metadata ${all}` };
  if (isStandIn && designTypes === undefined && !(count > 0 && areNamed(records, count, designTypes)))
    return { ok: false, problem: 'its source is that of another function, which accepts any arguments' };
  const parameters: ParameterFacts[] = [];
  for (let index = 0; index < all; index += 1)
    parameters.push({
      index,
      records: records.get(index) ?? NO_RECORDS,
      designType: designTypes?.[index],
      parsed: isUsable ? parsed[index] : undefined,
    });
  return { ok: true, parameters };
}

type Records = InheritedMethod['record']['parameters'];

function areNamed(records: Records, count: number, designTypes: readonly unknown[] | undefined): boolean {
  for (let index = 0; index < count; index += 1) {
    const record = records.get(index)?.[0];
    const isNamed =
      record === undefined
        ? isInjectedType(designTypes?.[index])
        : record.role !== 'property' || record.options.name !== undefined;
    if (!isNamed) return false;
  }
  return true;
}

function factsFromGenerated(
  { name, inject, optional = false, rest = false, schema }: DescribedParameter,
  { $defs }: DescribedTool,
  designType: unknown,
): Pick<ParameterFacts, 'designType' | 'parsed' | 'generated'> {
  const value = schema && fromGenerated(schema, $defs);
  const token = inject === undefined ? value && designToken(value.type) : INJECTED[inject];
  const { default: fallback, ...keywords } = value?.keywords ?? {};
  return {
    designType: token ?? designType,
    parsed: {
      name,
      isRest: rest,
      hasDefault: optional,
      defaultValue: fallback === undefined ? undefined : { value: fallback },
    },
    generated: value && { ...value, keywords },
  };
}

const INJECTED = { context: ToolContext, signal: AbortSignal } as const;

/** Whether a parameter is injected because of its type. */
export function isInjectedType(designType: unknown): boolean {
  if (typeof designType !== 'function') return false;
  return (
    designType === AbortSignal || designType === ToolContext || designType.prototype instanceof ToolContext
  );
}

/**
 * Why a generated description no longer matches the method, continuing "it …"; `undefined` if it seems to match.
 * Minifiers and bundlers rename parameters, so a short or numbered name is not evidence.
 */
function misfitOf({ parameters, $defs }: DescribedTool, source: MethodSource): string | undefined {
  const { designTypes, parsed, count } = source;
  const known = designTypes?.length ?? parsed?.length;
  if (known === undefined ? count > parameters.length : known !== parameters.length) {
    return `has ${known ?? count} parameters, but its generated description has ${parameters.length}`;
  }
  return (
    (parsed && misnamed(parameters, parsed)) ?? (designTypes && mistyped(parameters, designTypes, $defs))
  );
}

function misnamed(
  parameters: readonly DescribedParameter[],
  parsed: readonly ParsedParameter[],
): string | undefined {
  const described = parameters.map(({ name }) => name);
  const found = parsed.map(({ name }) => name);
  const isReordered = same([...described].sort(), [...found].sort()) && !same(described, found);
  if (isReordered) {
    return `has the parameters (${found.join(', ')}), but its generated description has (${described.join(', ')})`;
  }
  for (const [index, name] of found.entries()) {
    const other = described[index];
    if (name === undefined || other === undefined || name.length <= SHORT) continue;
    // To avoid name clashes in a bundle, esbuild turns `tags` into `tags2`; others write `tags$1` or `_tags`.
    const isRenamed = [other, `_${other}`].some(
      (start) => name.startsWith(start) && /^\$?\d*$/.test(name.slice(start.length)),
    );
    if (isRenamed) continue;
    return `has a parameter ${name} (#${index}), which is named ${other} in its generated description`;
  }
  const shape = parsed.findIndex(
    ({ isRest, hasDefault }, index) =>
      isRest !== (parameters[index]?.rest ?? false) ||
      (hasDefault &&
        !isRest &&
        parameters[index]?.optional !== true &&
        parameters[index]?.inject === undefined),
  );
  return shape < 0
    ? undefined
    : `has a parameter #${shape} that is optional or a rest parameter in only one of source and description`;
}

/** The longest name that minifiers use. */
const SHORT = 2;

function mistyped(
  parameters: readonly DescribedParameter[],
  designTypes: readonly unknown[],
  $defs: DescribedTool['$defs'],
): string | undefined {
  for (const [index, { name, schema, rest }] of parameters.entries()) {
    const designType = designTypes[index];
    if (schema === undefined || rest || typeof designType !== 'function' || LOST.includes(designType))
      continue;
    const expected = designToken(fromGenerated(schema, $defs).type);
    if (typeof expected !== 'function' || expected === Object || expected === designType) continue;
    return `has the type ${designType.name} at ${name ?? ''} (#${index}), but its generated description has ${expected.name}`;
  }
  return undefined;
}

/** Types in metadata that mean the type is unknown. */
const LOST: readonly unknown[] = [Object, Function, Promise];

function same(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((one, index) => one === others[index]);
}
