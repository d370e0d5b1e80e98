import type { EnumSource } from '../contract/declaration.js';
import {
  exactly,
  isJsonScalar,
  oneOf,
  optionsOf,
  partly,
  type RuleMeaning,
  type RuleTable,
} from './rule-meaning.js';
import { enumValues } from './type-reference.js';

/** Rules for any value, objects and numbers. */
export const VALUE_RULES: RuleTable = {
  isString: () => exactly('string'),
  isBoolean: () => exactly('boolean'),
  isInt: () => exactly('integer'),
  isNumber: ([options]) => numberWith(optionsOf(options).maxDecimalPlaces),
  isDate: () => exactly('date'),
  isObject: () => exactly('object'),
  isArray: () => exactly('array'),
  // The reverse mapping of a numeric enum, which class-validator lets through, is not offered.
  isEnum: ([entity]) => oneOf(enumValues(entity as EnumSource)),
  isIn: ([values]) => (Array.isArray(values) ? among(values) : { exact: false }),
  isNotIn: ([values]) => (Array.isArray(values) ? noneOf(values) : { exact: true, acceptsMissing: true }),
  equals: ([value]) => equalTo(value),
  notEquals: ([value]) => noneOf([value]),
  isEmpty: () => ({ values: ['', null], exact: true, acceptsMissing: true }),
  // Only text can be empty in this sense; on other types the keyword has no effect and is left out.
  isNotEmpty: () => ({ keywords: { minLength: 1 }, exact: true }),
  isNotEmptyObject: ([options]) => ({
    ...exactly('object', { minProperties: 1 }),
    exact: optionsOf(options).nullable !== false,
  }),
  isInstance: () => ({ exact: false }),
  min: ([least]) => bound('minimum', least),
  max: ([most]) => bound('maximum', most),
  isPositive: () => exactly('number', { exclusiveMinimum: 0 }),
  isNegative: () => exactly('number', { exclusiveMaximum: 0 }),
  isDivisibleBy: ([divisor]) => multipleOf(divisor),
  // Both take text as well, which is left to class-validator.
  isLatitude: () => ({ keywords: { minimum: -90, maximum: 90 }, exact: false }),
  isLongitude: () => ({ keywords: { minimum: -180, maximum: 180 }, exact: false }),
  minDate: () => partly('date'),
  maxDate: () => partly('date'),
};

/** `multipleOf: 0.01` refuses 0.07 in floating point, so decimal places are left to class-validator. */
function numberWith(decimalPlaces: unknown): RuleMeaning {
  if (decimalPlaces === 0) return exactly('integer');
  return decimalPlaces === undefined ? exactly('number') : partly('number');
}

/** An object in the list is never `===` to one that was just parsed; `undefined` lets the property be absent. */
function among(values: readonly unknown[]): RuleMeaning {
  return { ...oneOf(values), acceptsMissing: values.includes(undefined) };
}

function equalTo(value: unknown): RuleMeaning {
  if (value === undefined) return { exact: false, acceptsMissing: true };
  return isJsonScalar(value) ? { keywords: { const: value }, exact: true } : { exact: false };
}

/** Values that JSON cannot carry need no forbidding; objects are never `===` to one that was just parsed. */
function noneOf(values: readonly unknown[]): RuleMeaning {
  const forbidden = values.filter(isJsonScalar);
  const acceptsMissing = !values.includes(undefined);
  if (forbidden.length === 0) return { exact: true, acceptsMissing };
  const [only] = forbidden;
  const not = forbidden.length === 1 ? { const: only } : { enum: forbidden };
  return { keywords: { not }, exact: true, acceptsMissing };
}

function bound(keyword: 'minimum' | 'maximum', value: unknown): RuleMeaning {
  return typeof value === 'number' && Number.isFinite(value)
    ? exactly('number', { [keyword]: value })
    : partly('number');
}

/** class-validator divides by the whole part of the divisor. */
function multipleOf(divisor: unknown): RuleMeaning {
  const whole = typeof divisor === 'number' ? Math.abs(Math.trunc(divisor)) : 0;
  return whole > 0 ? exactly('number', { multipleOf: whole }) : partly('number');
}

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
