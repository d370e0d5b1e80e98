import {
  IsBoolean,
  IsDate,
  IsEnum,
  IsIn,
  IsInt,
  IsNumber,
  IsString,
  isBoolean,
  isEnum,
  isIn,
  isInt,
  isNumber,
  isString,
} from 'class-validator';
import fc from 'fast-check';
import { ANY_RULE, NUMBER_RULE, type RandomRule, rule, TEXT_RULE } from './random-rule.js';

/** A property whose type is not a class: its rules, and JSON values to try. */
export interface RandomLeaf {
  readonly kind: 'text' | 'number' | 'boolean' | 'date' | 'choice';
  readonly designType: unknown;
  readonly rules: readonly RandomRule[];
  readonly values: readonly unknown[];
}

/** A numeric enum as TypeScript compiles it, with the reverse mapping. */
const LEVEL = { Low: 1, High: 2, 1: 'Low', 2: 'High' };
const MODE = { Fast: 'fast', Slow: 'slow' };
const MIXED = { Text: 'text', Seven: 7 };

const TEXTS = [
  '',
  ' ',
  'a',
  'ab',
  'é',
  '👍',
  'a👍',
  'a\nb',
  'abc1',
  'A-Z.9',
  '12',
  'true',
  'a@b.de',
  'x.y+z@host.example.org',
  'a@b',
  '$ {}',
  'twenty characters...',
  '7c1f3b1e-2a55-4c55-9d3b-0c7a6a0f7f10',
];
const NUMBERS = [-2, -1.5, 0, 1, 2, 3, 4, 0.1, 0.07, 2.345, 12, 1e20, 9007199254740991];
const DATES = ['2030-01-01T00:00:00Z', '1999-12-31T23:59:59.5+01:00', '2024-02-29 12:00:00z'];

const isText = rule('IsString', (options) => IsString(options), isString);
const isWhole = rule('IsInt', (options) => IsInt(options), isInt);
const isAnyNumber = rule(
  'IsNumber',
  (options) => IsNumber({}, options),
  (value) => isNumber(value),
);
const isFlag = rule('IsBoolean', (options) => IsBoolean(options), isBoolean);
const isMoment = rule(
  'IsDate',
  (options) => IsDate(options),
  (value) => !Number.isNaN(new Date(String(value)).getTime()),
);

function ruled(
  of: Omit<RandomLeaf, 'rules'>,
  ...rules: readonly fc.Arbitrary<readonly RandomRule[]>[]
): fc.Arbitrary<RandomLeaf> {
  return fc
    .tuple(...rules)
    .map((lists) => ({ ...of, rules: lists.flat() }))
    .filter(({ rules }) => isPossible(rules));
}

/** Bounds that no value satisfies would be a mistake of the class. */
function isPossible(rules: readonly RandomRule[]): boolean {
  const bounds = rules.flatMap(({ text }): { readonly least?: number; readonly most?: number }[] => {
    const [, name = '', first = '', second = first] =
      /^(Min|Max|Length)(?:Length)?\((-?\d+)(?:, (\d+))?\)/.exec(text) ?? [];
    if (text === 'IsNotEmpty') return [{ least: 1 }];
    if (name === '') return [];
    return [
      {
        least: name === 'Max' ? undefined : Number(first),
        most: name === 'Min' ? undefined : Number(second),
      },
    ];
  });
  const least = Math.max(...bounds.map((bound) => bound.least ?? Number.NEGATIVE_INFINITY));
  return bounds.every(({ most = Number.POSITIVE_INFINITY }) => least <= most);
}

const some = (arbitrary: fc.Arbitrary<RandomRule>, minLength = 0) =>
  fc.array(arbitrary, { minLength, maxLength: 2 });
const always = (...rules: readonly RandomRule[]) => fc.constant(rules);

const text = { kind: 'text', designType: String, values: TEXTS } as const;
const number = { kind: 'number', designType: Number, values: NUMBERS } as const;

/** A list of values or an enum. The metadata of an enum depends on the compiler. */
const choice: fc.Arbitrary<RandomLeaf> = fc.oneof(
  fc.constantFrom(LEVEL, MODE, MIXED).chain((entity) =>
    fc.constantFrom<unknown>(entity, Object).map((designType) => ({
      kind: 'choice' as const,
      designType,
      values: Object.values(entity).filter((value) => value !== 'Low' && value !== 'High'),
      rules: [
        rule(
          `IsEnum(${JSON.stringify(entity)})`,
          (options) => IsEnum(entity, options),
          (value) => isEnum(value, entity),
        ),
      ],
    })),
  ),
  fc
    .uniqueArray(fc.constantFrom<unknown>('x', 'y', 'ab', 0, 3, 1.5, true), { minLength: 1, maxLength: 4 })
    .map((values) => ({
      kind: 'choice' as const,
      designType: Object,
      values,
      rules: [
        rule(
          `IsIn(${JSON.stringify(values)})`,
          (options) => IsIn(values, options),
          (value) => isIn(value, values),
        ),
      ],
    })),
);

/** Text, numbers, booleans, dates, enums and lists of values with matching rules. */
export const randomLeaf: fc.Arbitrary<RandomLeaf> = fc.oneof(
  ruled(text, always(isText), some(TEXT_RULE), some(ANY_RULE)),
  ruled(text, some(TEXT_RULE, 1)),
  ruled(number, always(isAnyNumber), some(NUMBER_RULE), some(ANY_RULE)),
  ruled(number, some(NUMBER_RULE), always(isWhole)),
  ruled(number, some(NUMBER_RULE, 1)),
  ruled({ kind: 'boolean', designType: Boolean, values: [true, false] }, always(isFlag)),
  ruled({ kind: 'date', designType: Date, values: DATES }, always(isMoment)),
  choice,
);
