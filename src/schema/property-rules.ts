import type { JsonSchema } from '../contract/json-schema.js';
import type { ValidationRule } from '../validators/validation-rules.js';
import { CLASS_VALIDATOR_RULES, ruleMeaning } from './class-validator-rules.js';
import { mergeKeywords } from './keywords.js';
import type { RuleMeaning, TypeHint } from './rule-meaning.js';

/** What a property's rules say of one kind of value: the property's, or its items'. */
export interface ValueRules {
  readonly hint?: TypeHint;
  readonly keywords: JsonSchema;
  readonly values?: readonly unknown[];
}

/** A rule of which the schema says less than it does. */
interface InexactRule {
  readonly rule: ValidationRule;
  readonly meaning: RuleMeaning;
}

/** All class-validator rules of one property, summed up. */
export interface PropertyRules {
  readonly own: ValueRules;
  /** What the rules with `each: true` say. */
  readonly items: ValueRules;
  /** Some rule is for items. */
  readonly hasItems: boolean;
  readonly isOptional: boolean;
  /** `@ValidateIf`: whether any rule applies is known at call time only. */
  readonly isConditional: boolean;
  readonly isNested: boolean;
  /** Every rule accepts a property that is not there. */
  readonly acceptsMissing: boolean;
  /** Rules of which the schema says less than they do. */
  readonly inexact: readonly InexactRule[];
  /** Only class-validator itself can judge the value: conditions, unknown rules, contradictions. */
  readonly needsValidator: boolean;
}

/** What a list of rules comes to, while they are added up. */
interface Sum {
  hint?: TypeHint;
  keywords: JsonSchema;
  values?: readonly unknown[];
}

/** Sums up the rules of one property. Under `@ValidateIf` they give no constraints, only the type. */
export function propertyRules(rules: readonly ValidationRule[], eachIsOwn: boolean): PropertyRules {
  const own: Sum = { keywords: {} };
  const items: Sum = { keywords: {} };
  const inexact: InexactRule[] = [];
  let isContradiction = false;
  let isConditional = false;
  let isOptional = false;
  let hasItems = false;
  let acceptsMissing = true;
  // Decorators of one property run from the last to the first; the author's order is the other way round.
  for (const rule of rules.toReversed()) {
    const isOfItems = rule.each && !eachIsOwn;
    hasItems ||= isOfItems;
    if (rule.role === 'conditional' && rule.name === 'isOptional') isOptional = true;
    else if (rule.role === 'conditional') isConditional = true;
    if (rule.role === 'conditional' || rule.role === 'allowed') continue;
    const meaning = meaningOf(rule);
    if (!meaning.exact) inexact.push({ rule, meaning });
    acceptsMissing &&= meaning.acceptsMissing ?? false;
    if (isOfItems) add(items, meaning);
    else {
      isContradiction ||= contradicts(own, meaning);
      add(own, meaning);
    }
  }
  return {
    own: isConditional ? { hint: own.hint, keywords: {} } : own,
    items: isConditional ? { hint: items.hint, keywords: {} } : items,
    hasItems,
    isOptional,
    isConditional,
    isNested: rules.some(({ role }) => role === 'nested'),
    acceptsMissing,
    inexact,
    needsValidator: isConditional || !inexact.every(({ rule }) => isStandard(rule)) || isContradiction,
  };
}

/** One of class-validator's own rules, which are synchronous and depend on the value only. */
export function isStandard({ name, conditional }: ValidationRule): boolean {
  return !conditional && name !== undefined && Object.hasOwn(CLASS_VALIDATOR_RULES, name);
}

function meaningOf(rule: ValidationRule): RuleMeaning {
  if (rule.conditional) return { exact: false, acceptsMissing: true };
  // The nested class has rules of its own, which are judged with it.
  if (rule.role === 'defined' || rule.role === 'nested') return { exact: true };
  return ruleMeaning(rule.name, rule.constraints);
}

function add(sum: Sum, { hint, keywords, values }: RuleMeaning): void {
  if (hint !== undefined && (sum.hint === undefined || (sum.hint === 'number' && hint === 'integer')))
    sum.hint = hint;
  if (keywords !== undefined) sum.keywords = mergeKeywords(sum.keywords, keywords);
  if (values !== undefined) sum.values = sum.values === undefined ? values : intersect(sum.values, values);
}

/** Whether no value can keep both what is summed up and another rule. */
function contradicts(sum: Sum, { hint, values }: RuleMeaning): boolean {
  if (values !== undefined && sum.values !== undefined) return true;
  return hint !== undefined && sum.hint !== undefined && kindOf(hint) !== kindOf(sum.hint);
}

function kindOf(hint: TypeHint): TypeHint {
  return hint === 'integer' ? 'number' : hint;
}

/** No value at all is no schema; class-validator then refuses whatever comes. */
function intersect(some: readonly unknown[], others: readonly unknown[]): readonly unknown[] {
  const common = some.filter((value) => others.includes(value));
  return common.length > 0 ? common : some;
}
