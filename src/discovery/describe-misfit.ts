import type { DescribedParameter, DescribedTool } from '../contract/class-description.js';
import { describedValue } from '../schema/described-type.js';
import { designToken } from '../schema/design-token.js';
import type { ParsedParameter } from './parameter-list.js';

/** What is known of a method at run time, to hold its generated description against. */
export interface MethodSource {
  readonly designTypes?: readonly unknown[];
  readonly parsed?: readonly ParsedParameter[];
  /** How many parameters there are, as far as anything tells. */
  readonly count: number;
}

/**
 * Why a generated description no longer fits the method, continuing "it …"; nothing where it fits as far as
 * can be seen. Minifiers rename parameters, so that a short name proves nothing.
 */
export function describeMisfit(
  { parameters, $defs = {} }: DescribedTool,
  source: MethodSource,
): string | undefined {
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
    if (name === undefined || other === undefined || name === other || name.length <= SHORT) continue;
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
    const expected = designToken(describedValue(schema, $defs).type);
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
