import fc from 'fast-check';

/** A TypeScript type with its own check, independent of any compiler or schema. */
export interface RandomType {
  readonly source: string;
  /** Values of the type in JSON form. */
  readonly values: fc.Arbitrary<unknown>;
  accepts(value: unknown): boolean;
}

const DATE = '2030-01-02T03:04:05.000Z';
const LINK = 'https://example.org/a';

/** Texts that are valid for at least one of the types, so that wrong values are often almost right. */
const TEXTS = ['', 'a', 'b', 'open', 'id_7', 'id_x', '12', DATE, LINK];

const leaf = (
  source: string,
  values: fc.Arbitrary<unknown>,
  accepts: (value: unknown) => boolean,
): RandomType => ({
  source,
  values,
  accepts,
});

const isText = (value: unknown): value is string => typeof value === 'string';

/** The types without parts. Date, URL, bigint and Uint8Array are text in JSON. */
const LEAVES: readonly RandomType[] = [
  leaf('string', fc.constantFrom(...TEXTS), isText),
  leaf('number', fc.constantFrom(0, 1, -2.5), (value) => typeof value === 'number'),
  leaf('boolean', fc.boolean(), (value) => typeof value === 'boolean'),
  leaf('null', fc.constant(null), (value) => value === null),
  leaf("'a' | 'b'", fc.constantFrom('a', 'b'), (value) => value === 'a' || value === 'b'),
  leaf("'open' | 1 | true", fc.constantFrom('open', 1, true), (value) =>
    ['open', 1, true].some((one) => one === value),
  ),
  leaf('State', fc.constantFrom('open', 'b'), (value) => value === 'open' || value === 'b'),
  leaf('Level.Low', fc.constant(0), (value) => value === 0),
  leaf('Date', fc.constant(DATE), (value) => value === DATE),
  leaf('URL', fc.constant(LINK), (value) => value === LINK),
  leaf('bigint', fc.constantFrom('12', '-3'), (value) => isText(value) && /^-?[0-9]+$/.test(value)),
  leaf('Uint8Array', fc.constant('a'), isText),
  leaf(
    '`id_${number}`',
    fc.constantFrom('id_7', 'id_-1.5'),
    (value) => isText(value) && /^id_-?[0-9.]+$/.test(value),
  ),
  leaf("string & { readonly __brand: 'Id' }", fc.constantFrom(...TEXTS), isText),
  leaf('unknown', fc.constantFrom(1, 'a', null), () => true),
];

/** Declarations that the sources above use. */
export const PRELUDE = `enum State { Open = 'open', Other = 'b' }
enum Level { Low, High }
`;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const list = (item: RandomType): RandomType => ({
  source: `(${item.source})[]`,
  values: fc.array(item.values, { maxLength: 3 }),
  accepts: (value) => Array.isArray(value) && value.every((one) => item.accepts(one)),
});

const record = (item: RandomType): RandomType => ({
  source: `Record<string, ${item.source}>`,
  values: fc.dictionary(fc.constantFrom('a', 'b', 'x'), item.values, { maxKeys: 2 }),
  accepts: (value) => isObject(value) && Object.values(value).every((one) => item.accepts(one)),
});

const tuple = (first: RandomType, second: RandomType, rest: RandomType | undefined): RandomType => ({
  source: `readonly [${first.source}, (${second.source})?${rest ? `, ...(${rest.source})[]` : ''}]`,
  values: fc
    .tuple(first.values, second.values, fc.array(rest?.values ?? fc.constant(null), { maxLength: 2 }))
    .map(([one, two, more]) => [one, two, ...(rest ? more : [])]),
  accepts: (value) =>
    Array.isArray(value) &&
    value.length >= 1 &&
    (rest !== undefined || value.length <= 2) &&
    value.every((one, index) => [first, second][index]?.accepts(one) ?? rest?.accepts(one)),
});

const union = (one: RandomType, other: RandomType): RandomType => ({
  source: `(${one.source}) | (${other.source})`,
  values: fc.oneof(one.values, other.values),
  accepts: (value) => one.accepts(value) || other.accepts(value),
});

interface Property {
  readonly name: string;
  readonly type: RandomType;
  readonly isOptional: boolean;
}

function objectOf(properties: readonly Property[], source: string): RandomType {
  const required = properties.filter(({ isOptional }) => !isOptional).map(({ name }) => name);
  return {
    source,
    values: fc.record(Object.fromEntries(properties.map(({ name, type }) => [name, type.values])), {
      requiredKeys: required,
    }),
    accepts: (value) =>
      isObject(value) &&
      properties.every(({ name, type, isOptional }) =>
        Object.hasOwn(value, name) ? type.accepts(value[name]) : isOptional,
      ),
  };
}

function literalOf(properties: readonly Property[]): string {
  return `{ ${properties.map(({ name, type, isOptional }) => `${name}${isOptional ? '?' : ''}: ${type.source}`).join('; ')} }`;
}

function propertiesOf(
  names: readonly string[],
  item: fc.Arbitrary<RandomType>,
): fc.Arbitrary<readonly Property[]> {
  return fc.tuple(
    ...names.map((name) => fc.record({ name: fc.constant(name), type: item, isOptional: fc.boolean() })),
  );
}

/** Random types, up to three levels deep. */
export const randomType: fc.Arbitrary<RandomType> = fc.letrec<{ type: RandomType }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom(...LEAVES),
    tie('type').map(list),
    tie('type').map(record),
    fc.tuple(tie('type'), tie('type'), fc.option(tie('type'), { nil: undefined })).map((of) => tuple(...of)),
    fc.tuple(tie('type'), tie('type')).map((of) => union(...of)),
    propertiesOf(['kind', 'size'], tie('type')).map((all) => objectOf(all, literalOf(all))),
    propertiesOf(['a', 'b'], tie('type')).map((all) =>
      objectOf(
        all.map((one) => ({ ...one, isOptional: true })),
        `Partial<${literalOf(all)}>`,
      ),
    ),
    propertiesOf(['x', 'y', 'z'], tie('type')).map((all) =>
      objectOf(all.slice(0, 2), `Omit<${literalOf(all)}, 'z'>`),
    ),
    fc
      .tuple(propertiesOf(['p'], tie('type')), propertiesOf(['q', 'r'], tie('type')))
      .map(([some, others]) => objectOf([...some, ...others], `${literalOf(some)} & ${literalOf(others)}`)),
  ),
})).type;

/** Values unrelated to the type. */
const STRAY: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(...TEXTS, 0, 1, -2.5, true, false, null),
  fc.constantFrom<unknown>([], ['a'], [1, 'a'], {}, { kind: 'a' }, { a: 1, b: null }, { x: true }),
);

/** A value with one part replaced, added or removed. */
export function spoilt(value: unknown): fc.Arbitrary<unknown> {
  const whole = STRAY;
  if (Array.isArray(value)) {
    const changed = fc
      .tuple(fc.nat({ max: value.length }), STRAY)
      .map(([at, stray]) => [...value.slice(0, at), stray, ...value.slice(at + 1)]);
    return fc.oneof(whole, changed, fc.constant(value.slice(1)));
  }
  if (!isObject(value)) return whole;
  const keys = Object.keys(value);
  if (keys.length === 0) return whole;
  const replaced = fc
    .tuple(fc.constantFrom(...keys), STRAY)
    .map(([key, stray]) => ({ ...value, [key]: stray }));
  const inner = fc
    .constantFrom(...keys)
    .chain((key) => spoilt(value[key]).map((part) => ({ ...value, [key]: part })));
  const without = fc
    .constantFrom(...keys)
    .map((gone) => Object.fromEntries(keys.filter((key) => key !== gone).map((key) => [key, value[key]])));
  return fc.oneof(whole, replaced, inner, without);
}
