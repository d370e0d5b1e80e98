import fc from 'fast-check';
import { isDto, type RandomDto, type RandomProperty } from './random-dto.js';

/** JSON values that fit almost no property. */
const WRONG: readonly unknown[] = [
  null,
  true,
  7,
  -0.5,
  '',
  'odd',
  '2030-01-01',
  'yesterday',
  '2030-13-01T00:00:00Z',
  [],
  {},
  [null],
  [[]],
  [{}],
  ['a', 'a'],
  { a: 1 },
  { constructor: 1 },
];

const EXTRA = fc.constantFrom('extra', 'constructor', 'toString', '__proto__', 'hasOwnProperty');

/** Arguments for a class: half of them fit its rules if possible, the others contain mistakes. */
export function randomArguments(dto: RandomDto): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  return fc.oneof(objectOf(dto, false), objectOf(dto, true));
}

function objectOf(dto: RandomDto, isCareless: boolean): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const entries = dto.properties.map((property) => entryOf(property, isCareless));
  const extra = fc.option(
    EXTRA.map((key) => [key, 'more'] as const),
    { nil: undefined, freq: 2 },
  );
  // Built from entries, so that `__proto__` is an own key, as after JSON.parse.
  return fc
    .tuple(...entries, extra)
    .map((all) => Object.fromEntries(all.filter((entry) => entry !== undefined)));
}

function entryOf(
  property: RandomProperty,
  isCareless: boolean,
): fc.Arbitrary<readonly [string, unknown] | undefined> {
  const value = valueFor(property, isCareless).map((one) => [property.name, one] as const);
  if (property.isOptional) return fc.option(value, { nil: undefined, freq: 3 });
  return isCareless ? fc.option(value, { nil: undefined, freq: 12 }) : value;
}

function valueFor(property: RandomProperty, isCareless: boolean): fc.Arbitrary<unknown> {
  const { list } = property;
  const one = oneOf(property, isCareless);
  if (list === undefined) return one;
  const usual = { minLength: Math.min(Math.max(1, list.least), list.most ?? 2), maxLength: list.most ?? 2 };
  const items = isCareless ? fc.array(one, { maxLength: 4 }) : fc.array(one, usual);
  return isCareless ? mistaken(items) : items;
}

function oneOf({ of }: RandomProperty, isCareless: boolean): fc.Arbitrary<unknown> {
  if (isDto(of)) return isCareless ? mistaken(objectOf(of, true)) : objectOf(of, false);
  const good = of.values.filter((value) => of.rules.every((rule) => rule.holds(value)));
  const fitting = fc.constantFrom(...(good.length > 0 ? good : of.values));
  return isCareless
    ? mistaken(
        fc.oneof({ weight: 8, arbitrary: fitting }, { weight: 1, arbitrary: fc.constantFrom(...of.values) }),
      )
    : fitting;
}

function mistaken(usual: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 14, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom(...WRONG) });
}
