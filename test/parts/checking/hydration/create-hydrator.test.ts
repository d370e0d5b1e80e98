import type { JsonObject } from 'toolwright';
import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Expose, Transform, Type } from 'class-transformer';
import {
  IsDate,
  IsEmail,
  IsInt,
  IsOptional,
  IsString,
  Validate,
  ValidateNested,
  ValidatorConstraint,
  type ValidatorConstraintInterface,
} from 'class-validator';
import { Param } from 'toolwright/decorators';
import { z } from 'zod';
import { createHydrator } from '../../../../src/tools/checking/hydration/create-hydrator.js';
import type { ArgumentsModel, PropertyModel, ValueType } from '../../../../src/tools/schema/value-type.js';

const property = (name: string, type: ValueType): PropertyModel => ({
  name,
  type,
  required: true,
  nullable: false,
  keywords: {},
});

function hydrate(source: ArgumentsModel, args: JsonObject) {
  const run = createHydrator(source);
  if (run === undefined) throw new Error('nothing to hydrate');
  return run(args);
}

class Line {
  @IsString() sku!: string;
  @IsInt() count = 1;
  total() {
    return `${this.count} ${this.sku}`;
  }
}

class Order {
  @ValidateNested({ each: true }) @Type(() => Line) lines!: Line[];
  @IsOptional() @IsDate() due?: Date;
  @IsOptional() @IsString() @Expose({ name: 'ship_by' }) shipBy?: string;
}

describe('arguments that need no hydration', () => {
  test.each<[string, ValueType]>([
    ['text', { kind: 'scalar', name: 'string' }],
    ['an enum', { kind: 'enum', values: ['a'] }],
    ['an array of numbers', { kind: 'array', items: { kind: 'scalar', name: 'number' } }],
    ['a record of anything', { kind: 'record', values: { kind: 'any' } }],
    ['JSON Schema', { kind: 'schema', schema: {} }],
  ])('%s needs no hydrator', (_, type) => {
    expect(createHydrator({ properties: [property('it', type)] })).toBeUndefined();
  });

  test('a value that needs no hydration is passed on as the same object', () => {
    const tags = ['a'];
    const hydrated = hydrate(
      { properties: [property('when', { kind: 'date' }), property('tags', { kind: 'any' })] },
      { when: '2030-01-01T00:00:00Z', tags },
    );
    expect(hydrated).toEqual({ ok: true, value: { when: new Date('2030-01-01T00:00:00Z'), tags: ['a'] } });
    expect((hydrated as { value: JsonObject }).value.tags).toBe(tags);
  });
});

describe('types that JSON does not have', () => {
  const types = {
    properties: [
      property('date', { kind: 'date' }),
      property('url', { kind: 'url' }),
      property('bytes', { kind: 'bytes' }),
      property('buffer', { kind: 'buffer' }),
      property('set', { kind: 'array', items: { kind: 'date' }, collection: 'set' }),
      property('map', { kind: 'record', values: { kind: 'date' }, collection: 'map' }),
      property('dates', { kind: 'record', values: { kind: 'date' } }),
    ],
  } as const satisfies ArgumentsModel;
  const text = '2030-01-01T00:00:00.000Z';
  const date = new Date(text);

  test('are hydrated to instances', () => {
    const args = {
      date: text,
      url: 'http://a.de',
      bytes: 'aGk=',
      buffer: 'aGk',
      set: [text],
      map: { a: text },
    };
    const hydrated = hydrate(types, { ...args, dates: JSON.parse(`{"__proto__":"${text}"}`) });
    const { value } = hydrated as { value: JsonObject };
    expect(value).toMatchObject({
      date,
      url: new URL('http://a.de'),
      set: new Set([date]),
      map: new Map([['a', date]]),
    });
    expect(value.bytes).toStrictEqual(new Uint8Array([104, 105]));
    expect(Buffer.isBuffer(value.buffer)).toBe(true);
    expect(Object.entries(value.dates as object)).toEqual([['__proto__', date]]);
    expect(Object.getPrototypeOf(value.dates)).toBe(Object.prototype);
  });

  test('report all invalid texts at once, with their paths', () => {
    const args = { date: 'soon', url: 'no url', bytes: '?', buffer: 'a', set: [text, 'x'], map: { a: 'x' } };
    expect(hydrate(types, args)).toEqual({
      ok: false,
      faults: [
        { path: 'date', message: 'must be a valid date' },
        { path: 'url', message: 'must be a valid URL' },
        { path: 'bytes', message: 'must be valid base64' },
        { path: 'buffer', message: 'must be valid base64' },
        { path: 'set.1', message: 'must be a valid date' },
        { path: 'map.a', message: 'must be a valid date' },
      ],
    });
  });

  test('stay null if the schema allows it', () => {
    expect(hydrate(types, { date: null, set: null })).toEqual({ ok: true, value: { date: null, set: null } });
  });
});

describe('DTO classes', () => {
  test('are hydrated to instances, synchronously if the schema validates everything', () => {
    const hydrated = hydrate(
      { class: Order },
      { lines: [{ sku: 'a', count: 2 }], due: '2030-01-01T00:00:00Z' },
    );
    const { value } = hydrated as { value: Order };
    expect(value).toBeInstanceOf(Order);
    expect(value.lines[0]?.total()).toBe('2 a');
    expect(value.due).toEqual(new Date('2030-01-01T00:00:00Z'));
  });

  test('have no extra keys at any depth, and no prototype that the model chose', () => {
    const args = JSON.parse(
      '{"lines":[{"sku":"a","price":1,"__proto__":{"evil":1}}],"constructor":1,"total":2,"__proto__":{"evil":1}}',
    );
    const { value } = hydrate({ class: Order }, args) as { value: Order & { evil?: number } };
    expect(Object.keys(value)).not.toContain('constructor');
    expect(Object.keys(value.lines[0] as Line).sort()).toEqual(['count', 'sku']);
    expect(value.evil).toBeUndefined();
    expect(Object.getPrototypeOf(value)).toBe(Order.prototype);
  });

  test('treat null of an optional property as absent, keep initial values, and use exposed names', () => {
    const args = { lines: [{ sku: 'a' }], due: null, ship_by: 'air', shipBy: 'post' };
    const { value } = hydrate({ class: Order }, args) as { value: Order };
    expect(value.due).toBeUndefined();
    expect(value.lines[0]?.count).toBe(1);
    expect(value.shipBy).toBe('air');
  });

  test('that contain themselves are hydrated at any depth', () => {
    class Node {
      @IsDate() at!: Date;
      @IsOptional() @ValidateNested({ each: true }) @Type(() => Node) next?: Node[];
    }
    const at = '2030-01-01T00:00:00Z';
    const { value } = hydrate({ class: Node }, { at, next: [{ at, next: [{ at }] }] }) as { value: Node };
    expect(value.next?.[0]?.next?.[0]).toBeInstanceOf(Node);
    expect(hydrate({ class: Node }, { at, next: [{ at, next: [{ at: 'x' }] }] })).toEqual({
      ok: false,
      faults: [{ path: 'next.0.next.0.at', message: 'must be a valid date' }],
    });
  });

  test('keep a property that only has a getter', () => {
    class Dto {
      @Param() name!: string;
      @Param() get shout(): string {
        return this.name.toUpperCase();
      }
    }
    const { value } = hydrate({ class: Dto }, { name: 'a', shout: 'x' }) as { value: Dto };
    expect(value.shout).toBe('A');
  });

  test('in a discriminated union are chosen by the tag', () => {
    class Circle {
      @IsInt() radius!: number;
    }
    class Square {
      @IsString() kind!: string;
      @IsInt() side!: number;
    }
    const subTypes = [
      { name: 'circle', value: Circle },
      { name: 'square', value: Square },
    ];
    class Drawing {
      @Type(() => Object, { discriminator: { property: 'kind', subTypes } }) one!: Circle | Square;
      @Type(() => Object, { discriminator: { property: 'kind', subTypes }, keepDiscriminatorProperty: true })
      many!: (Circle | Square)[];
    }
    const circle = { kind: 'circle', radius: 1 };
    const { value } = hydrate(
      { class: Drawing },
      { one: circle, many: [circle, { kind: 'square', side: 2 }] },
    ) as {
      value: Drawing;
    };
    expect(value.one).toStrictEqual(Object.assign(new Circle(), { radius: 1 }));
    expect(value.many[0]).toEqual({ kind: 'circle', radius: 1 });
    expect(value.many[1]).toBeInstanceOf(Square);
  });

  test('@Transform receives the hydrated value and the original object', () => {
    class Dto {
      @Transform(({ value }) => String(value).trim()) @IsString() name!: string;
      @Transform(({ value, obj }) => [value, obj.name]) @Type(() => Date) at!: unknown;
    }
    const run = createHydrator({ class: Dto });
    return expect(run?.({ name: ' a ', at: '2030-01-01T00:00:00Z' })).resolves.toMatchObject({
      value: { name: 'a', at: [new Date('2030-01-01T00:00:00Z'), ' a '] },
    });
  });
});

describe('class-validator rules that JSON Schema cannot express', () => {
  @ValidatorConstraint({ name: 'isEven' })
  class IsEven implements ValidatorConstraintInterface {
    async validate(value: number) {
      return value % 2 === 0;
    }
    defaultMessage() {
      return '$property must be even';
    }
  }
  class Item {
    @Validate(IsEven) @IsInt() @Expose({ name: 'item_count' }) count!: number;
  }
  class Basket {
    @ValidateNested({ each: true }) @Type(() => Item) items!: Item[];
    @IsEmail() mail!: string;
  }

  test('report errors with JSON names and paths', async () => {
    const args = { items: [{ item_count: 2 }, { item_count: 3 }], mail: 'nobody' };
    expect(await hydrate({ class: Basket }, args)).toEqual({
      ok: false,
      faults: [
        { path: 'items.1.item_count', message: 'must be even' },
        { path: 'mail', message: 'must be an email' },
      ],
    });
    expect(await hydrate({ class: Basket }, { items: [], mail: 'a@b.de' })).toMatchObject({ ok: true });
  });

  test('run in nested classes, also without @ValidateNested, and in values of records', async () => {
    class Outer {
      @Type(() => Item) plain!: Item;
      @Param({ additionalProperties: () => Item }) byName!: Record<string, Item>;
    }
    expect(
      await hydrate({ class: Outer }, { plain: { item_count: 1 }, byName: { a: { item_count: 1 } } }),
    ).toEqual({
      ok: false,
      faults: [
        { path: 'plain.item_count', message: 'must be even' },
        { path: 'byName.a.item_count', message: 'must be even' },
      ],
    });
  });

  test('run once in unions and maps with @ValidateNested', async () => {
    class Union {
      @ValidateNested()
      @Type(() => Object, { discriminator: { property: 'kind', subTypes: [{ name: 'item', value: Item }] } })
      one!: Item;
      @ValidateNested() @Type(() => Item) map!: Map<string, Item>;
    }
    const args = { one: { kind: 'item', item_count: 1 }, map: { a: { item_count: 3 } } };
    expect(await hydrate({ class: Union }, args)).toEqual({
      ok: false,
      faults: [
        { path: 'one.item_count', message: 'must be even' },
        { path: 'map.a.item_count', message: 'must be even' },
      ],
    });
  });

  test('run for a DTO that is one of several parameters', async () => {
    const type: ValueType = { kind: 'class', class: Item };
    expect(await hydrate({ properties: [property('item', type)] }, { item: { item_count: 1 } })).toEqual({
      ok: false,
      faults: [{ path: 'item.item_count', message: 'must be even' }],
    });
  });

  test('run only for the selected groups', async () => {
    class Grouped {
      @Validate(IsEven, { groups: ['create'] }) n!: number;
      @IsEmail({}, { groups: ['update'] }) mail!: string;
    }
    expect(await hydrate({ class: Grouped, groups: ['create'] }, { n: 1, mail: 'x' })).toMatchObject({
      faults: [{ path: 'n' }],
    });
    expect(await hydrate({ class: Grouped, groups: ['update'] }, { n: 1, mail: 'x' })).toMatchObject({
      faults: [{ path: 'mail' }],
    });
  });
});

describe('Standard Schemas', () => {
  const schemaType = (standard: z.ZodType): ValueType => ({ kind: 'schema', schema: {}, standard });

  test('return the parsed value, synchronously if possible', () => {
    const type = schemaType(z.object({ n: z.string().transform(Number) }));
    expect(hydrate({ type }, { n: '5' })).toEqual({ ok: true, value: { n: 5 } });
    expect(hydrate({ properties: [property('it', type)] }, { it: { n: '5' }, other: 1 })).toEqual({
      ok: true,
      value: { it: { n: 5 }, other: 1 },
    });
  });

  test('report their issues with paths', () => {
    const type = schemaType(z.object({ list: z.array(z.object({ n: z.number().min(1, 'is too small') })) }));
    expect(hydrate({ type }, { list: [{ n: 2 }, { n: 0 }] })).toEqual({
      ok: false,
      faults: [{ path: 'list.1.n', message: 'is too small' }],
    });
  });

  test('can be asynchronous, at any depth, and before a @Transform', async () => {
    const later = z.string().transform(async (text) => text.toUpperCase());
    class Dto {
      @Param({ schema: later }) word!: string;
      @Param({ items: later as never }) words!: string[];
      @Transform(({ value }) => `${value}!`) @Param({ schema: later }) shout!: string;
      @Param({ additionalProperties: later as never }) by!: Record<string, string>;
    }
    const args = { word: 'a', words: ['b', 'c'], shout: 'd', by: { e: 'f' } };
    expect(await hydrate({ class: Dto }, args)).toEqual({
      ok: true,
      value: { word: 'A', words: ['B', 'C'], shout: 'D!', by: { e: 'F' } },
    });
  });
});

test('1,000 concurrent calls of one hydrator do not affect each other', async () => {
  const standard = z.string().transform(async (text) => text.length);
  const run = createHydrator({ properties: [property('it', { kind: 'schema', schema: {}, standard })] });
  const all = await Promise.all(Array.from({ length: 1000 }, (_, n) => run?.({ it: 'x'.repeat(n % 50), n })));
  expect(all).toEqual(Array.from({ length: 1000 }, (_, n) => ({ ok: true, value: { it: n % 50, n } })));
});

test('the thousandth instance of a class is created like the first, with any kind of property', async () => {
  const later = z.string().transform(async (text) => text.toUpperCase());
  class Dto {
    @IsString() plain!: string;
    @IsOptional() @IsString() 'with "quotes"'?: string;
    @Param({ type: () => String, required: false }) toString!: () => string;
    @IsOptional() @IsString() @Expose({ name: 'ship_by' }) shipBy?: string;
    @IsOptional() @IsDate() @Expose({ name: 'due_at' }) due?: Date;
    @IsOptional() @Transform(({ value }) => `${value}!`) @IsString() shout?: string;
    @IsOptional() @ValidateNested() @Type(() => Line) line?: Line;
    @Param({ schema: later, required: false }) later?: string;
    @IsOptional() @IsInt() count = 3;
  }
  const run = createHydrator({ class: Dto });
  const sent: object[] = [
    { plain: 'a', extra: 1 },
    { plain: 'a', 'with "quotes"': 'b', ship_by: 'c', due_at: '2030-01-01T00:00:00Z', shout: 'd', count: 1 },
    { plain: 'a', ship_by: null, due_at: null, line: null, count: null },
    { plain: 'a', toString: 'own', line: { sku: 'x', count: 2 }, later: 'z' },
    { plain: 'a', line: { sku: 'x' }, shipBy: 'no', count: undefined },
  ];
  const made = async () => Promise.all(sent.map(async (args) => run?.(args as JsonObject)));
  const first = await made();
  for (let round = 0; round < 200; round += 1) await made();
  expect(await made()).toEqual(first);
});
