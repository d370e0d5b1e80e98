import type { JsonObject } from 'toolwright';
import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Expose, plainToInstance, Transform, Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  ArrayUnique,
  Contains,
  IsArray,
  IsBoolean,
  IsDate,
  IsEmail,
  IsEnum,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  IsPositive,
  IsString,
  Length,
  Matches,
  Max,
  Min,
  NotEquals,
  ValidateBy,
  ValidateIf,
  ValidateNested,
  validate,
} from 'class-validator';
import fc from 'fast-check';
import { createHydrator } from '../../../../src/tools/checking/hydration/create-hydrator.js';
import { writeParameters } from '../../../../src/tools/schema/write-schema.js';
import { runs } from '../../../setup/runs.js';
import { compileSchema } from '../../schema/compile-schema.js';

enum Status {
  Open = 'open',
  Closed = 'closed',
}

const IsEven = () =>
  ValidateBy({
    name: 'isEven',
    validator: { validate: (value) => typeof value === 'number' && value % 2 === 0 },
  });

class Address {
  @IsString() @Length(1, 10) street!: string;
  @IsOptional() @Matches(/^[a-z]{2}$/i) country?: string;
}

class Plain {
  @IsString() @Contains('a') text!: string;
  @IsInt() @Min(0) @Max(5) count!: number;
  @IsNumber() @IsPositive() price!: number;
  @IsBoolean() flag!: boolean;
  @IsEnum(Status) status!: Status;
  @IsOptional() @IsIn(['x', 'y', 3]) choice?: unknown;
  @NotEquals('forbidden') @IsString() word!: string;
}

class Nested {
  @ValidateNested() @Type(() => Address) address!: Address;
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(3)
  @ValidateNested({ each: true })
  @Type(() => Address)
  more!: Address[];
  @IsString({ each: true }) @ArrayUnique() tags!: string[];
  @IsOptional() @IsDate() @Type(() => Date) at?: Date;
  @IsInt() @IsEven() even!: number;
  @IsEmail() mail!: string;
}

class Tree {
  @IsString() @Length(1, 3) name!: string;
  @IsOptional() @ValidateNested({ each: true }) @Type(() => Tree) children?: Tree[];
}

class Renamed extends Address {
  @Expose({ name: 'first_name' }) @IsString() firstName!: string;
  @Transform(({ value }) => (typeof value === 'string' ? value.toUpperCase() : value))
  @Length(2, 4)
  code!: string;
  @IsInt() @Min(1) level!: number;
  @ValidateIf((dto: Renamed) => dto.level > 2) @Matches(/^s/) secret!: string;
}

const word = fc.constantFrom(
  '',
  'a',
  'ab',
  'DE',
  'abcd',
  'sab',
  'forbidden',
  'open',
  'x',
  'much longer than that',
  'é',
  'a@b.de',
);
const number = fc.constantFrom(-1, 0, 1, 2, 3, 5, 6, 1.5, 0.1, 1e9);
const wrong = fc.constantFrom<unknown>(true, 7, 'odd', { a: 1 });
const often = <T>(usual: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 30, arbitrary: usual }, wrong);
const date = fc.constantFrom('2030-01-01T00:00:00Z', '1999-12-31T23:59:59.5+01:00');

const address = fc.record(
  {
    street: often(fc.constantFrom('a', 'ab', 'ten chars!', 'eleven chars')),
    country: often(fc.constantFrom('de', 'FR')),
  },
  { requiredKeys: ['street'] },
);
const tree = fc.letrec((tie) => ({
  node: fc.record(
    { name: often(word), children: fc.array(tie('node'), { maxLength: 2, depthIdentifier: 'tree' }) },
    { requiredKeys: ['name'] },
  ),
})).node;

/** Arguments that are often valid, as JSON and as the declared types. */
const CASES: readonly (readonly [string, new () => object, fc.Arbitrary<object>])[] = [
  [
    'scalars',
    Plain,
    fc.record(
      {
        text: often(word),
        count: often(number),
        price: often(number),
        flag: often(fc.boolean()),
        status: often(fc.constantFrom('open', 'closed')),
        choice: often(fc.constantFrom('x', 'y', 3)),
        word: often(word),
      },
      { requiredKeys: ['text', 'count', 'flag'] },
    ),
  ],
  [
    'nested classes, arrays, dates and custom validators',
    Nested,
    fc.record(
      {
        address: often(address),
        more: fc.array(address, { maxLength: 4 }),
        tags: fc.array(often(word), { maxLength: 3 }),
        at: date,
        even: often(number),
        mail: often(fc.constantFrom('a@b.de', 'ü@ö.de', '"a b"@c.de', 'a@b', 'x y@z.de')),
      },
      { requiredKeys: ['address', 'more', 'tags', 'even', 'mail'] },
    ),
  ],
  ['a class that contains itself', Tree, tree as fc.Arbitrary<object>],
  [
    'inheritance, other names, transforms and conditions',
    Renamed,
    fc.record(
      {
        street: often(word),
        country: often(word),
        first_name: often(word),
        code: fc.constantFrom('ab', 'abc', 'abcd', 'a', 'abcde'),
        level: often(number),
        secret: word,
      },
      { requiredKeys: ['street', 'level'] },
    ),
  ],
];

function validatorOf(target: new () => object): (args: object) => Promise<object | undefined> {
  const written = writeParameters({ class: target });
  if (!written.ok) throw new Error(written.faults.map(({ problem }) => problem).join('; '));
  const fits = compileSchema(written.schema);
  const hydrate = createHydrator({ class: target });
  return async (args) => {
    const hydrated = fits(args) ? await hydrate?.(args as JsonObject) : undefined;
    return hydrated?.ok ? (hydrated.value as object) : undefined;
  };
}

test('unlike in class-validator, a missing @ValidateNested object is an error', async () => {
  const args = { more: [{ street: 'a' }], tags: [], even: 2, mail: 'a@b.de' };
  expect(await validate(plainToInstance(Nested, args))).toEqual([]);
  expect(await validatorOf(Nested)(args)).toBeUndefined();
});

describe('schema, hydration and class-validator together agree with plainToInstance and validate', () => {
  test.each(CASES)('%s', async (_, target, generated) => {
    const check = validatorOf(target);
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(generated, async (args) => {
        const theirs = plainToInstance(target, structuredClone(args));
        const isValid = (await validate(theirs, { forbidUnknownValues: false })).length === 0;
        const ours = await check(args);
        expect([args, ours !== undefined]).toEqual([args, isValid]);
        if (ours === undefined) return;
        accepted += 1;
        expect(ours).toBeInstanceOf(target);
        expect(ours).toEqual(theirs);
      }),
      { numRuns: runs(400) },
    );
    expect(accepted).toBeGreaterThan(0);
  });
});
