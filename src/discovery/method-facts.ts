import type { DescribedParameter, DescribedTool } from '../contract/declaration.js';
import { ToolContext } from '../contract/tool-context.js';
import type { InheritedMethod, ParameterRecord } from '../metadata/class-record.js';
import { fromGenerated } from '../schema/from-generated.js';
import { designToken } from '../schema/type-reference.js';
import type { ValueModel } from '../schema/value-type.js';
import { type ParsedParameter, parameterList } from './parameter-list.js';

/** Everything that is known of one parameter, from its decorators, its metadata and its source. */
export interface ParameterFacts {
  readonly index: number;
  readonly records: readonly ParameterRecord[];
  /** `design:paramtypes` at this position; `undefined` where the build tool emits none. */
  readonly designType: unknown;
  readonly parsed?: ParsedParameter;
  /** What the generated file says of it. */
  readonly generated?: ValueModel;
}

/** The parameters of a method, or why they cannot be known. */
export type MethodFacts =
  | {
      readonly ok: true;
      readonly parameters: readonly ParameterFacts[];
      /** The generated description that was used. */
      readonly generated?: DescribedTool;
      /** Why there is one that was not used, continuing "it …". */
      readonly misfit?: string;
    }
  | { readonly ok: false; readonly problem: string };

// biome-ignore lint/suspicious/noExplicitAny: a method of a user's class has any signature
export type MethodFunction = (...args: any[]) => unknown;

const NO_RECORDS: readonly ParameterRecord[] = [];

/**
 * Gathers the facts of a method's parameters; nothing is interpreted yet. A generated description that fits
 * the method says more than source and metadata; one that does not is left aside.
 */
export function methodFacts(
  { record, declaredIn }: InheritedMethod,
  method: MethodFunction,
  generated?: DescribedTool,
): MethodFacts {
  const { key, parameters: records } = record;
  const designTypes: readonly unknown[] | undefined = Reflect.getOwnMetadata(
    'design:paramtypes',
    declaredIn.prototype,
    key,
  );
  const list = parameterList(method);
  const isStandIn = takesAnything(method, list);
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

/** What is known of a method at run time. */
interface MethodSource {
  readonly designTypes?: readonly unknown[];
  readonly parsed?: readonly ParsedParameter[];
  /** How many parameters there are, as far as its length and its decorators tell. */
  readonly count: number;
  /** How many there are at least, by the last that has a decorator. */
  readonly decorated: number;
}

/** What decorators put in a method's place is a function expression, and hands all that it gets on. */
function takesAnything(method: MethodFunction, list: readonly ParsedParameter[] | undefined): boolean {
  const isRest = list?.length === 1 && list[0]?.isRest === true;
  return isRest && /^(?:async\s+)?(?:function\b|\()/.test(Function.prototype.toString.call(method));
}

/** `isStandIn`: a decorator below `@Tool` has put another function in the method's place, which tells nothing. */
function factsFromSource(
  records: Records,
  { designTypes, parsed, count: least, decorated }: MethodSource,
  isStandIn: boolean,
): MethodFacts {
  const count = designTypes?.length ?? parsed?.length ?? least;
  const all = Math.max(count, decorated);
  // Where every property is named by hand, the source is not needed, whatever a wrapper or minifier made of it.
  const isUsable = parsed !== undefined && parsed.length === count && decorated <= count;
  if (parsed !== undefined && !isUsable && !areNamed(records, count, designTypes))
    return { ok: false, problem: `its source lists ${parsed.length} parameters, its metadata ${all}` };
  if (isStandIn && designTypes === undefined && !(count > 0 && areNamed(records, count, designTypes)))
    return { ok: false, problem: 'its source is that of another function, which takes any arguments' };
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

/** Whether a parameter's type alone says that it is injected. */
export function isInjectedType(designType: unknown): boolean {
  return isContextType(designType) || designType === AbortSignal;
}

/** Whether a type is `ToolContext` or a class derived from it. */
export function isContextType(designType: unknown): boolean {
  return (
    typeof designType === 'function' &&
    (designType === ToolContext || designType.prototype instanceof ToolContext)
  );
}

/**
 * Why a generated description no longer fits the method, continuing "it …"; nothing where it fits as far as
 * can be seen. Minifiers and bundlers rename parameters: a short name, or a numbered one, proves nothing.
 */
function misfitOf({ parameters, $defs = {} }: DescribedTool, source: MethodSource): string | undefined {
  const { designTypes, parsed, count } = source;
  const known = designTypes?.length ?? parsed?.length;
  if (known === undefined ? count > parameters.length : known !== parameters.length) {
    return `has ${known ?? count} parameters, and its generated description ${parameters.length}`;
  }
  return (
    (parsed && misnamed(parameters, parsed)) ?? (designTypes && mistyped(parameters, { designTypes, $defs }))
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
    return `takes (${found.join(', ')}), and its generated description says (${described.join(', ')})`;
  }
  for (const [index, name] of found.entries()) {
    const other = described[index];
    if (name === undefined || other === undefined || name.length <= SHORT) continue;
    if (isRenamed(name, other)) continue;
    return `has a parameter ${name} (#${index}), which its generated description calls ${other}`;
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
    : `has a parameter #${shape} that is optional or a rest only in one of source and description`;
}

/** Where another name of a bundle is the same, esbuild makes `tags2` of `tags`, others `tags$1` or `_tags`. */
function isRenamed(name: string, original: string): boolean {
  const starts = [original, `_${original}`];
  return starts.some((start) => name.startsWith(start) && /^\$?\d*$/.test(name.slice(start.length)));
}

/** The longest name that minifiers give. */
const SHORT = 2;

function mistyped(
  parameters: readonly DescribedParameter[],
  {
    designTypes,
    $defs,
  }: { readonly designTypes: readonly unknown[]; readonly $defs: NonNullable<DescribedTool['$defs']> },
): string | undefined {
  for (const [index, { name, schema, rest }] of parameters.entries()) {
    const designType = designTypes[index];
    if (schema === undefined || rest || typeof designType !== 'function' || LOST.includes(designType))
      continue;
    const expected = designToken(fromGenerated(schema, $defs).type);
    if (typeof expected !== 'function' || expected === Object || expected === designType) continue;
    return `has the type ${designType.name} at ${name ?? ''} (#${index}), and its generated description ${expected.name}`;
  }
  return undefined;
}

/** What metadata says where it does not know. */
const LOST: readonly unknown[] = [Object, Function, Promise];

function same(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((one, index) => one === others[index]);
}
