import { expect, test } from '@jest/globals';
import { Type } from 'class-transformer';
import {
  getMetadataStorage,
  IsInt,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
  ValidateNested,
} from 'class-validator';
import fc from 'fast-check';
import { discoverTools, Param, Tool, ToolRegistry, Toolset } from 'toolwright';
import { ApiOperation, ApiProperty } from './api-decorators.js';

type Class = new () => object;

/** The schema of a tool that takes a DTO. */
function schemaOf(dto: Class) {
  return registryOf(dto).get('take')?.parameters;
}

function registryOf(dto: Class): ToolRegistry {
  @Toolset()
  class Takes {
    @Tool('Take')
    take(taken: object) {
      return taken;
    }
  }
  Reflect.defineMetadata('design:paramtypes', [dto], Takes.prototype, 'take');
  return new ToolRegistry().register(...discoverTools({ toolsets: [Takes] }));
}

function propertiesOf(dto: Class) {
  return schemaOf(dto)?.properties;
}

enum Status {
  Open = 'open',
  Paid = 'paid',
}

class Place {
  @ApiProperty({ description: 'Street and number' })
  street!: string;
}

test('@ApiProperty adds description, example, enum, bounds, null and required to a property', () => {
  class Order {
    @ApiProperty({
      description: 'Number of the order',
      example: 17,
      minimum: 1,
      maximum: 99,
      type: 'integer',
    })
    id!: number;

    @ApiProperty({ enum: ['open', 'paid'], required: false, default: 'open' })
    status?: string;

    @ApiProperty({
      nullable: true,
      minLength: 2,
      maxLength: 40,
      pattern: '^[a-z]+$',
      examples: ['tea', 'jam'],
    })
    item!: string;

    @ApiProperty({
      isArray: true,
      enum: undefined,
      items: { type: 'string', enum: ['a', 'b'] },
      type: 'array',
    })
    tags!: string[];

    @ApiProperty({ type: [String], minItems: 1, maxLength: 3 })
    codes!: string[];

    @ApiProperty({ type: () => [Place] })
    places!: Place[];

    @ApiProperty({ minimum: 0, exclusiveMinimum: true, format: 'float', deprecated: true, title: 'Price' })
    price!: number;
  }
  expect(schemaOf(Order)).toMatchObject({
    properties: {
      id: { type: 'integer', description: 'Number of the order', examples: [17], minimum: 1, maximum: 99 },
      status: { enum: ['open', 'paid'], default: 'open' },
      item: {
        type: ['string', 'null'],
        minLength: 2,
        maxLength: 40,
        pattern: '^[a-z]+$',
        examples: ['tea', 'jam'],
      },
      tags: { type: 'array', items: { enum: ['a', 'b'] } },
      codes: { type: 'array', minItems: 1, items: { type: 'string', maxLength: 3 } },
      places: { type: 'array' },
      price: { type: 'number', exclusiveMinimum: 0, title: 'Price', deprecated: true },
    },
    required: ['id', 'item', 'tags', 'codes', 'places', 'price'],
  });
  expect(JSON.stringify(schemaOf(Order))).toContain('Street and number');
  expect(propertiesOf(Order)?.price).not.toHaveProperty('minimum');
  expect(propertiesOf(Order)?.price).not.toHaveProperty('format');
});

test('@Param overrides class-validator, which overrides @ApiProperty', () => {
  class Order {
    @Param('From @Param')
    @ApiProperty({ description: 'From @ApiProperty', example: 'a' })
    both!: string;

    @IsInt()
    @Max(100)
    @ApiProperty({ minimum: 1, maximum: 50, required: false })
    count!: number;

    @Param({ maximum: 10 })
    @Max(100)
    @ApiProperty({ maximum: 50 })
    most!: number;

    @IsOptional()
    @IsString()
    @ApiProperty({ required: true })
    maybe?: string;
  }
  expect(schemaOf(Order)).toMatchObject({
    properties: {
      both: { type: 'string', description: 'From @Param', examples: ['a'] },
      count: { type: 'integer', minimum: 1, maximum: 100 },
      most: { maximum: 10 },
    },
    required: ['both', 'count', 'most'],
  });
});

test('invalid defaults, foreign formats and broken patterns of @ApiProperty are ignored', async () => {
  class Odd {
    @ApiProperty({ default: '10', format: 'int64' })
    size!: number;

    @ApiProperty({ pattern: '(', format: 'password' })
    word!: string;

    @ApiProperty({ type: String, format: 'date-time' })
    at!: Date;

    @ApiProperty({ readOnly: true })
    createdAt!: Date;

    @ApiProperty({ nullable: true })
    @IsString()
    text!: string;
  }
  expect(schemaOf(Odd)).toMatchObject({
    properties: {
      size: { type: 'number' },
      word: { type: 'string' },
      at: { type: 'string', format: 'date-time' },
      text: { type: 'string' },
    },
    required: ['size', 'word', 'at', 'text'],
  });
  expect(propertiesOf(Odd)).not.toHaveProperty('createdAt');
  const at = '2026-01-02T03:04:05.000Z';
  const result = await registryOf(Odd).execute('take', { size: 1, word: 'a', at, text: 't' });
  expect(result).toMatchObject({ isError: false, forLLM: expect.stringContaining(at) });
});

test('@ApiOperation describes a tool that has no description of its own', () => {
  @Toolset()
  class Orders {
    @Tool()
    @ApiOperation({ summary: 'Find an order', description: 'By its number, also if it is closed.' })
    find(id: string) {
      return id;
    }

    @ApiOperation({ summary: 'Close an order' })
    @Tool()
    close(id: string) {
      return id;
    }

    @Tool('In my words')
    @ApiOperation({ summary: 'Open an order' })
    open(id: string) {
      return id;
    }
  }
  const tools = discoverTools({ toolsets: [Orders] });
  expect(tools.map(({ description }) => description)).toEqual([
    'Find an order\nBy its number, also if it is closed.',
    'Close an order',
    'In my words',
  ]);
});

/** Copies the rules of class-validator like `@nestjs/mapped-types`. */
function mapped(source: Class, { name, keys, optional = false }: Mapping): Class {
  const target = { [name]: class {} }[name] as Class;
  const storage = getMetadataStorage();
  const rules = storage.getTargetValidationMetadatas(source, '', false, false);
  for (const rule of rules.filter(({ propertyName }) => keys?.includes(propertyName) ?? true)) {
    const type = Reflect.getMetadata('design:type', source.prototype, rule.propertyName);
    if (type) Reflect.defineMetadata('design:type', type, target.prototype, rule.propertyName);
    storage.addValidationMetadata({ ...rule, target } as typeof rule);
    if (optional) IsOptional()(target.prototype, rule.propertyName);
  }
  return target;
}

interface Mapping {
  readonly name: string;
  readonly keys?: readonly string[];
  readonly optional?: boolean;
}

class CreateOrder {
  @Param({ description: 'What to order', minLength: 2, required: true })
  @IsString()
  item!: string;

  @ApiProperty({ description: 'How many', example: 3 })
  @IsInt()
  @Min(1)
  quantity!: number;

  @Param('Where to')
  @ApiProperty({ type: () => Place })
  @ValidateNested()
  @Type(() => Place)
  place!: Place;

  @Param('A note for the cook')
  note!: string;
}

test('mapped types inherit @Param and @ApiProperty, although they copy only rules', () => {
  const item = { description: 'What to order', minLength: 2 };
  const quantity = { description: 'How many', examples: [3], minimum: 1 };
  const place = { description: 'Where to' };
  class UpdateOrder extends mapped(CreateOrder, { name: 'PartialCreateOrder', optional: true }) {}
  expect(schemaOf(UpdateOrder)).toMatchObject({
    properties: { item, quantity, place, note: { type: 'string', description: 'A note for the cook' } },
    required: [],
  });
  class Picked extends mapped(CreateOrder, { name: 'PickClassType', keys: ['item', 'place'] }) {}
  expect(schemaOf(Picked)).toMatchObject({ properties: { item, place }, required: ['item', 'place'] });
  expect(propertiesOf(Picked)).not.toHaveProperty('quantity');
  expect(propertiesOf(Picked)).not.toHaveProperty('note');
  class Paged {
    @Param('Page, from 1')
    @IsInt()
    page!: number;
  }
  const both = mapped(CreateOrder, { name: 'IntersectionCreateOrderPaged' });
  for (const rule of getMetadataStorage().getTargetValidationMetadatas(Paged, '', false, false))
    getMetadataStorage().addValidationMetadata({ ...rule, target: both } as typeof rule);
  expect(schemaOf(both)).toMatchObject({
    properties: { item, quantity, place, page: { description: 'Page, from 1' }, note: { type: 'string' } },
  });
  const twice = mapped(Picked, { name: 'PartialPicked', keys: ['item'], optional: true });
  expect(schemaOf(twice)).toMatchObject({ properties: { item }, required: [] });
});

test('@Param does not apply to another class with the same rules and property names', () => {
  class One {
    @Param('Of the first')
    @IsString()
    @MaxLength(3)
    name!: string;
  }
  class Other {
    @IsString()
    @MaxLength(3)
    name!: string;
  }
  class Third extends mapped(Other, { name: 'PickClassType' }) {
    @Param('Of the third')
    name!: string;
  }
  expect(propertiesOf(One)?.name).toHaveProperty('description', 'Of the first');
  expect(propertiesOf(Other)?.name).not.toHaveProperty('description');
  expect(propertiesOf(Third)?.name).toEqual({ type: 'string', maxLength: 3, description: 'Of the third' });
});

test('discoverTools names mapped types as the cause if a class has no properties', () => {
  const empty = mapped(Place, { name: 'PartialPlace' });
  expect(() => schemaOf(empty)).toThrow(
    /it is a mapped type \(PartialType, PickType, …\) of a class with nothing/,
  );
});

test('any @ApiProperty options give a schema whose values the tool accepts', async () => {
  const metadata = fc.record(
    {
      type: fc.constantFrom<unknown>(
        String,
        Number,
        Boolean,
        'string',
        'file',
        Array,
        Object,
        undefined,
        () => Place,
      ),
      enum: fc.constantFrom<unknown>(['a', 'b'], [1, 2], Status, undefined, () => Status),
      isArray: fc.boolean(),
      minimum: fc.anything(),
      pattern: fc.anything(),
      format: fc.anything(),
      default: fc.anything(),
      example: fc.jsonValue(),
      required: fc.anything(),
      nullable: fc.anything(),
      description: fc.anything(),
      items: fc.constantFrom<unknown>({ type: 'string' }, { $ref: '#/components/schemas/X' }, undefined),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(metadata, async (options) => {
      class Documented {
        @ApiProperty(options)
        @IsString()
        text!: string;
      }
      const result = await registryOf(Documented).execute('take', { text: 'a' });
      expect(result.forLLM).not.toContain('schema');
    }),
    { numRuns: 50 },
  );
});
