import { exactly, isJsonScalar, partly, type RuleMeaning, type RuleTable } from './rule-row.js';

/** Rules for arrays as a whole; `each: true` makes any other rule one for the items. */
export const ARRAY_RULES: RuleTable = {
  arrayMinSize: ([least]) => size('minItems', least),
  arrayMaxSize: ([most]) => size('maxItems', most),
  arrayNotEmpty: () => exactly('array', { minItems: 1 }),
  // Whether the decorator was given a function that identifies items is not recorded, so class-validator
  // always looks too. It compares by reference; that the keyword compares deeply matters for objects only,
  // and it is left out for them.
  arrayUnique: () => partly('array', { uniqueItems: true }),
  arrayContains: ([values]) => (Array.isArray(values) ? containing(values) : partly('array')),
  arrayNotContains: ([values]) => (Array.isArray(values) ? notContaining(values) : partly('array')),
};

function size(keyword: 'minItems' | 'maxItems', value: unknown): RuleMeaning {
  return Number.isInteger(value) && (value as number) >= 0
    ? exactly('array', { [keyword]: value })
    : partly('array');
}

function containing(values: readonly unknown[]): RuleMeaning {
  const wanted = values.filter(isJsonScalar).map((value) => ({ contains: { const: value } }));
  const [first, ...others] = wanted;
  const keywords = others.length === 0 ? first : { allOf: wanted };
  return { hint: 'array', keywords, exact: wanted.length === values.length };
}

function notContaining(values: readonly unknown[]): RuleMeaning {
  const forbidden = values.filter(isJsonScalar);
  if (forbidden.length === 0) return exactly('array');
  return exactly('array', { not: { contains: { enum: forbidden } } });
}
