import type { DescribedParameter, DescribedTool } from '../contract/class-description.js';
import type { ClassType } from '../contract/class-type.js';
import { ToolContext } from '../contract/tool-context.js';
import type { ParameterRecord } from '../metadata/tool-method-record.js';
import type { InheritedMethod } from '../metadata/tool-methods.js';
import { type DescribedValue, describedValue } from '../schema/described-type.js';
import { designToken } from '../schema/design-token.js';
import { describeMisfit } from './describe-misfit.js';
import { type ParsedParameter, parameterList } from './parameter-list.js';

/** Everything that is known of one parameter, from its decorators, its metadata and its source. */
export interface ParameterFacts {
  readonly index: number;
  readonly records: readonly ParameterRecord[];
  /** `design:paramtypes` at this position; `undefined` where the build tool emits none. */
  readonly designType: unknown;
  readonly parsed?: ParsedParameter;
  /** What the generated file says of its type. */
  readonly described?: DescribedValue;
}

/** The parameters of a method, or why they cannot be known. */
export type MethodFacts =
  | {
      readonly ok: true;
      readonly parameters: readonly ParameterFacts[];
      /** The generated description that was used. */
      readonly described?: DescribedTool;
      /** Why there is one that was not used, continuing "it …". */
      readonly misfit?: string;
    }
  | { readonly ok: false; readonly problem: string };

/**
 * Gathers the facts of a method's parameters; nothing is interpreted yet. A generated description that fits
 * the method says more than source and metadata; one that does not is left aside.
 */
export function gatherParameters(
  inherited: InheritedMethod,
  method: MethodFunction,
  described?: DescribedTool,
): MethodFacts {
  const { record, declaredIn } = inherited;
  const designTypes = readDesignTypes(declaredIn, record.key);
  const list = parameterList(method);
  const isStandIn = takesAnything(method, list);
  const parsed = isStandIn ? undefined : list;
  const reading: MethodReading = { designTypes, parsed, method, isStandIn };
  if (described === undefined) return readParameters(inherited, reading);
  const count = Math.max(method.length, ...[...record.parameters.keys()].map((index) => index + 1));
  const misfit = describeMisfit(described, { designTypes, parsed, count });
  if (misfit !== undefined) {
    const facts = readParameters(inherited, reading);
    return facts.ok ? { ...facts, misfit } : facts;
  }
  const parameters = described.parameters.map((parameter, index) => ({
    index,
    records: record.parameters.get(index) ?? [],
    ...describedFacts(parameter, described, designTypes?.[index]),
  }));
  return { ok: true, parameters, described };
}

function describedFacts(
  { name, inject, optional = false, rest = false, schema }: DescribedParameter,
  { $defs }: DescribedTool,
  designType: unknown,
): Pick<ParameterFacts, 'designType' | 'parsed' | 'described'> {
  const value = schema && describedValue(schema, $defs);
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
    described: value && { ...value, keywords },
  };
}

const INJECTED = { context: ToolContext, signal: AbortSignal } as const;

interface MethodReading {
  readonly designTypes: readonly unknown[] | undefined;
  readonly parsed: readonly ParsedParameter[] | undefined;
  readonly method: MethodFunction;
  /** A decorator below `@Tool` has put another function in the method's place; nothing can be read from that. */
  readonly isStandIn: boolean;
}

/** What decorators put in a method's place is a function expression, and hands all that it gets on. */
function takesAnything(method: MethodFunction, list: readonly ParsedParameter[] | undefined): boolean {
  const isRest = list?.length === 1 && list[0]?.isRest === true;
  return isRest && /^(?:async\s+)?(?:function\b|\()/.test(Function.prototype.toString.call(method));
}

function readParameters(
  { record }: InheritedMethod,
  { designTypes, parsed, method, isStandIn }: MethodReading,
): MethodFacts {
  const decorated = Math.max(-1, ...record.parameters.keys()) + 1;
  const count = designTypes?.length ?? parsed?.length ?? Math.max(method.length, decorated);
  // Where every property is named by hand, the source is not needed, whatever a wrapper or minifier made of it.
  const usable = parsed !== undefined && parsed.length === count && decorated <= count;
  if (parsed !== undefined && !usable && !allNamed(record.parameters, count, designTypes)) {
    return {
      ok: false,
      problem: `its source lists ${parsed.length} parameters, its metadata ${Math.max(count, decorated)}`,
    };
  }
  if (
    isStandIn &&
    designTypes === undefined &&
    !(count > 0 && allNamed(record.parameters, count, designTypes))
  )
    return { ok: false, problem: 'its source is that of another function, which takes any arguments' };
  const parameters = Array.from({ length: Math.max(count, decorated) }, (_, index) => ({
    index,
    records: record.parameters.get(index) ?? [],
    designType: designTypes?.[index],
    parsed: usable ? parsed[index] : undefined,
  }));
  return { ok: true, parameters };
}

// biome-ignore lint/suspicious/noExplicitAny: a method of a user's class has any signature
export type MethodFunction = (...args: any[]) => unknown;

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

function readDesignTypes(declaredIn: ClassType, key: string | symbol): readonly unknown[] | undefined {
  return Reflect.getOwnMetadata('design:paramtypes', declaredIn.prototype, key);
}

function allNamed(
  records: ReadonlyMap<number, readonly ParameterRecord[]>,
  count: number,
  designTypes: readonly unknown[] | undefined,
): boolean {
  return Array.from({ length: count }, (_, index) => index).every((index) => {
    const record = records.get(index)?.[0];
    if (record === undefined) return isInjectedType(designTypes?.[index]);
    return record.role !== 'property' || record.options.name !== undefined;
  });
}
