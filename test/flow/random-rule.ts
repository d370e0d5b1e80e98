import {
  Contains,
  contains,
  IsAlpha,
  IsDivisibleBy,
  IsEmail,
  IsNegative,
  IsNotEmpty,
  IsNotIn,
  IsNumber,
  IsPositive,
  IsUUID,
  isAlpha,
  isDivisibleBy,
  isEmail,
  isNegative,
  isNotEmpty,
  isNotIn,
  isNumber,
  isPositive,
  isUUID,
  Length,
  length,
  Matches,
  Max as Maximum,
  MaxLength,
  Min as Minimum,
  MinLength,
  matches,
  max,
  maxLength,
  min,
  minLength,
  NotContains,
  NotEquals,
  notContains,
  notEquals,
  type ValidationOptions,
} from 'class-validator';
import fc from 'fast-check';

/** A decorator of class-validator with its arguments, and the validator behind it. */
export interface RandomRule {
  readonly text: string;
  decorate(options: ValidationOptions): PropertyDecorator;
  holds(value: unknown): boolean;
}

type Decorate = RandomRule['decorate'];
type Holds = RandomRule['holds'];

export function rule(text: string, decorate: Decorate, holds: Holds): RandomRule {
  return { text, decorate, holds };
}

const PATTERNS = [/^[a-z]+$/, /^[a-z0-9]{2,6}$/i, /\d/, /^.{2}$/u, /[a-z]/g, /^a.b$/s, /^\w+$/m, /^\p{L}+$/u];

/** Rules for text. Each of them refuses other types. */
export const TEXT_RULE: fc.Arbitrary<RandomRule> = fc.oneof(
  fc.nat(4).map((least) =>
    rule(
      `MinLength(${least})`,
      (options) => MinLength(least, options),
      (value) => minLength(value, least),
    ),
  ),
  fc.nat(12).map((most) =>
    rule(
      `MaxLength(${most})`,
      (options) => MaxLength(most, options),
      (value) => maxLength(value, most),
    ),
  ),
  fc.tuple(fc.nat(3), fc.integer({ min: 3, max: 20 })).map(([least, most]) =>
    rule(
      `Length(${least}, ${most})`,
      (options) => Length(least, most, options),
      (value) => length(value, least, most),
    ),
  ),
  fc.constantFrom(...PATTERNS).map((pattern) =>
    rule(
      `Matches(${pattern})`,
      (options) => Matches(pattern, options),
      (value) => matches(value as string, pattern),
    ),
  ),
  fc.constantFrom('a', '.', '👍').map((part) =>
    rule(
      `Contains(${part})`,
      (options) => Contains(part, options),
      (value) => contains(value, part),
    ),
  ),
  fc.constantFrom('b', '$', '@').map((part) =>
    rule(
      `NotContains(${part})`,
      (options) => NotContains(part, options),
      (value) => notContains(value, part),
    ),
  ),
  fc.constantFrom(
    rule('IsEmail', (options) => IsEmail({}, options), isEmail),
    rule('IsAlpha', (options) => IsAlpha(undefined, options), isAlpha),
    rule('IsUUID', (options) => IsUUID(undefined, options), isUUID),
  ),
);

/** Rules for numbers. Each of them refuses other types. */
export const NUMBER_RULE: fc.Arbitrary<RandomRule> = fc.oneof(
  fc.integer({ min: -3, max: 5 }).map((least) =>
    rule(
      `Min(${least})`,
      (options) => Minimum(least, options),
      (value) => min(value, least),
    ),
  ),
  fc.integer({ min: -1, max: 10 }).map((most) =>
    rule(
      `Max(${most})`,
      (options) => Maximum(most, options),
      (value) => max(value, most),
    ),
  ),
  // Dividing large numbers by powers of two has no rounding error: see `dto-differences.ts`.
  fc.constantFrom(1, 2, 4).map((divisor) =>
    rule(
      `IsDivisibleBy(${divisor})`,
      (options) => IsDivisibleBy(divisor, options),
      (value) => isDivisibleBy(value, divisor),
    ),
  ),
  fc.nat(2).map((maxDecimalPlaces) =>
    rule(
      `IsNumber(${maxDecimalPlaces} places)`,
      (options) => IsNumber({ maxDecimalPlaces }, options),
      (value) => isNumber(value, { maxDecimalPlaces }),
    ),
  ),
  fc.constantFrom(
    rule('IsPositive', (options) => IsPositive(options), isPositive as Holds),
    rule('IsNegative', (options) => IsNegative(options), isNegative as Holds),
  ),
);

/** Rules that do not restrict the type, used beside one that does. */
export const ANY_RULE: fc.Arbitrary<RandomRule> = fc.constantFrom(
  rule('IsNotEmpty', (options) => IsNotEmpty(options), isNotEmpty),
  rule(
    'NotEquals(ab)',
    (options) => NotEquals('ab', options),
    (value) => notEquals(value, 'ab'),
  ),
  rule(
    'IsNotIn(a, 0)',
    (options) => IsNotIn(['a', 0], options),
    (value) => isNotIn(value, ['a', 0]),
  ),
);
