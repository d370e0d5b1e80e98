import type { JsonSchema } from '../contract/json-schema.js';
import type { ValidationRule } from '../validators/validation-rules.js';
import { CLASS_VALIDATOR_RULES, ruleMeaning } from './class-validator-rules.js';
import { mergeKeywords } from './merge-keywords.js';
import type { RuleMeaning, TypeHint } from './rules/rule-row.js';

/** What a property's rules say of one kind of value: the property's, or its items'. */
export interface ValueRules {
  readonly hint?: TypeHint;
  readonly keywords: JsonSchema;
  readonly values?: readonly unknown[];
}

/** A rule of which the schema says less than it does. */
export interface InexactRule {
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

const NOTHING: ValueRules = { keywords: {} };

/** Sums up the rules of one property. Under `@ValidateIf` they give no constraints, only the type. */
export function propertyRules(rules: readonly ValidationRule[], eachIsOwn: boolean): PropertyRules {
  const isEach = (rule: ValidationRule) => rule.each && !eachIsOwn;
  const isOptionalMark = ({ role, name }: ValidationRule) => role === 'conditional' && name === 'isOptional';
  const conditions = rules.filter((rule) => rule.role === 'conditional' && !isOptionalMark(rule));
  // Decorators of one property run from the last to the first; the author's order is the other way round.
  const judging = rules.filter(({ role }) => role !== 'conditional' && role !== 'allowed').reverse();
  const isConditional = conditions.length > 0;
  const meanings = judging.map((rule) => ({ rule, meaning: meaningOf(rule), each: isEach(rule) }));
  const inexact = meanings.filter(({ meaning }) => !meaning.exact);
  const own = meanings.filter(({ each }) => !each).map(({ meaning }) => meaning);
  const items = meanings.filter(({ each }) => each).map(({ meaning }) => meaning);
  const sum = (all: readonly RuleMeaning[]) => {
    const total = all.reduce(add, NOTHING);
    return isConditional ? { hint: total.hint, keywords: {} } : total;
  };
  return {
    own: sum(own),
    items: sum(items),
    hasItems: rules.some(isEach),
    isOptional: rules.some(isOptionalMark),
    isConditional,
    isNested: rules.some(({ role }) => role === 'nested'),
    acceptsMissing: meanings.every(({ meaning }) => meaning.acceptsMissing ?? false),
    inexact,
    needsValidator: isConditional || !inexact.every(({ rule }) => isStandard(rule)) || disagrees(own),
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

function add(total: ValueRules, meaning: RuleMeaning): ValueRules {
  return {
    hint: narrower(total.hint, meaning.hint),
    keywords: mergeKeywords(total.keywords, meaning.keywords ?? {}),
    values:
      total.values && meaning.values
        ? intersect(total.values, meaning.values)
        : (total.values ?? meaning.values),
  };
}

function narrower(one: TypeHint | undefined, other: TypeHint | undefined): TypeHint | undefined {
  return one === 'number' && other === 'integer' ? other : (one ?? other);
}

/** No value at all is no schema; class-validator then refuses whatever comes. */
function intersect(some: readonly unknown[], others: readonly unknown[]): readonly unknown[] {
  const common = some.filter((value) => others.includes(value));
  return common.length > 0 ? common : some;
}

/** Rules that no value can keep together. */
function disagrees(meanings: readonly RuleMeaning[]): boolean {
  const hints = new Set(
    meanings.flatMap(({ hint }) => (hint === undefined ? [] : [hint === 'integer' ? 'number' : hint])),
  );
  const lists = meanings.filter(({ values }) => values !== undefined).length;
  return hints.size > 1 || lists > 1;
}
