import { expect, test } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import * as plain from '@nestjs/mapped-types';
import * as swagger from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { IsInt, IsString, Min } from 'class-validator';
import { Param, Tool, ToolRegistry } from 'toolwright';
import { ToolwrightModule } from 'toolwright/nestjs';

const { ApiOperation, ApiProperty, ApiPropertyOptional } = swagger;

enum Size {
  Small = 'small',
  Large = 'large',
}

class Place {
  @ApiProperty({ description: 'Street and number', example: 'Main Street 1' })
  street!: string;
}

class CreateOrder {
  @Param('What to order')
  @ApiProperty({ description: 'Overridden by @Param', example: 'tea' })
  @IsString()
  item!: string;

  @ApiProperty({ description: 'How many', minimum: 1, maximum: 10, example: 3 })
  @IsInt()
  @Min(2)
  quantity!: number;

  @ApiProperty({ enum: Size, nullable: true })
  size!: Size | null;

  @ApiProperty({ enum: Size, isArray: true, description: 'All that would do' })
  sizes!: Size[];

  @ApiProperty({ type: () => [Place] })
  places!: Place[];

  @ApiPropertyOptional({ type: 'integer', default: 1, deprecated: true })
  priority?: number;
}

class Paged {
  @Param('Page, from 1')
  @IsInt()
  page!: number;
}

/** Returns the schema of a tool of an application with this DTO as its argument. */
async function schemaOf(dto: new () => object) {
  @Injectable()
  class Tools {
    @Tool()
    @ApiOperation({ summary: 'Take it' })
    take(order: object) {
      return order;
    }
  }
  Reflect.defineMetadata('design:paramtypes', [dto], Tools.prototype, 'take');
  @Module({ imports: [ToolwrightModule.forRoot()], providers: [Tools] })
  class AppModule {}
  const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
  const tool = module.get(ToolRegistry).get('take');
  expect(tool?.description).toBe('Take it');
  return tool?.parameters;
}

const ITEM = { type: 'string', description: 'What to order', examples: ['tea'] };
const QUANTITY = { type: 'integer', description: 'How many', minimum: 2, maximum: 10, examples: [3] };
const SIZE = { enum: ['small', 'large', null] };

test('@ApiProperty of @nestjs/swagger adds descriptions, types and limits to the schema', async () => {
  expect(await schemaOf(CreateOrder)).toMatchObject({
    properties: {
      item: ITEM,
      quantity: QUANTITY,
      size: SIZE,
      sizes: { type: 'array', description: 'All that would do', items: { enum: ['small', 'large'] } },
      places: { type: 'array', items: { properties: { street: { description: 'Street and number' } } } },
      priority: { type: 'integer', default: 1, deprecated: true },
    },
    required: ['item', 'quantity', 'size', 'sizes', 'places'],
  });
});

test('@ApiProperty and @Param survive the mapped types of @nestjs/swagger', async () => {
  const { IntersectionType, OmitType, PartialType, PickType } = swagger;
  class Partly extends PartialType(CreateOrder) {}
  expect(await schemaOf(Partly)).toMatchObject({
    properties: { item: ITEM, quantity: QUANTITY, sizes: { description: 'All that would do' } },
    required: [],
  });
  class Picked extends PickType(CreateOrder, ['item', 'size']) {}
  expect(await schemaOf(Picked)).toMatchObject({
    properties: { item: ITEM, size: SIZE },
    required: ['item', 'size'],
  });
  class Omitted extends OmitType(CreateOrder, ['item', 'places']) {}
  expect(Object.keys((await schemaOf(Omitted))?.properties ?? {})).toEqual([
    'quantity',
    'size',
    'sizes',
    'priority',
  ]);
  class Both extends IntersectionType(CreateOrder, Paged) {}
  expect(await schemaOf(Both)).toMatchObject({
    properties: { item: ITEM, quantity: QUANTITY, page: { description: 'Page, from 1' } },
  });
  class Twice extends PartialType(OmitType(CreateOrder, ['places'])) {}
  expect(await schemaOf(Twice)).toMatchObject({
    properties: { item: ITEM, quantity: QUANTITY },
    required: [],
  });
});

test('@ApiProperty and @Param survive the mapped types of @nestjs/mapped-types', async () => {
  const { IntersectionType, OmitType, PartialType, PickType } = plain;
  class Partly extends PartialType(CreateOrder) {}
  expect(await schemaOf(Partly)).toMatchObject({
    properties: { item: ITEM, quantity: QUANTITY, size: SIZE },
    required: [],
  });
  class Picked extends PickType(CreateOrder, ['item']) {}
  expect(await schemaOf(Picked)).toMatchObject({ properties: { item: ITEM }, required: ['item'] });
  expect((await schemaOf(Picked))?.properties).not.toHaveProperty('quantity');
  class Omitted extends OmitType(CreateOrder, ['item']) {}
  expect(await schemaOf(Omitted)).toMatchObject({ properties: { quantity: QUANTITY } });
  class Both extends IntersectionType(CreateOrder, Paged) {}
  expect(await schemaOf(Both)).toMatchObject({
    properties: { item: ITEM, quantity: QUANTITY, size: SIZE, page: { description: 'Page, from 1' } },
  });
});

class Documented {
  @Param('Described by @Param')
  @ApiProperty({ description: 'Documented' })
  name!: string;

  @Param('A note')
  @ApiProperty()
  note!: string;

  @Param('A property without rules')
  plain!: string;
}

class Undocumented {
  @Param('A property without rules')
  plain!: string;

  @Param('A number without rules')
  other!: number;
}

test('@Param survives mapped types of a class without class-validator rules', async () => {
  const name = { type: 'string', description: 'Described by @Param' };
  const plainText = { type: 'string', description: 'A property without rules' };
  class Picked extends swagger.PickType(Documented, ['name']) {}
  expect(await schemaOf(Picked)).toEqual({ type: 'object', properties: { name }, required: ['name'] });
  class Omitted extends swagger.OmitType(Documented, ['note']) {}
  expect(await schemaOf(Omitted)).toMatchObject({ properties: { name } });
  class Partly extends swagger.PartialType(Documented) {}
  expect(await schemaOf(Partly)).toMatchObject({ properties: { name, plain: plainText }, required: [] });
  class PlainPartly extends plain.PartialType(Undocumented) {}
  expect(await schemaOf(PlainPartly)).toMatchObject({
    properties: { plain: plainText, other: { type: 'number' } },
    required: [],
  });
});
