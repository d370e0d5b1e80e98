import 'reflect-metadata';
import { Type } from 'class-transformer';
import {
  ArrayMinSize,
  IsArray,
  IsDate,
  IsEmail,
  IsEnum,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Length,
  Matches,
  Max,
  Min,
  MinLength,
  ValidateNested,
} from 'class-validator';
import { Args, discoverTools, Integer, Param, Tool, ToolContext, Toolset } from 'toolwright';
import { written } from './case.js';
import type { SampledTool } from './sampled-tool.js';

enum Shipping {
  Standard = 'standard',
  Express = 'express',
}

enum Level {
  Low,
  High,
}

class ItemDto {
  @IsString()
  @Length(1, 10)
  sku!: string;

  @IsInt()
  @Min(1)
  @Max(99)
  count!: number;
}

class CreateOrderDto {
  @Param('Where the invoice goes')
  @IsEmail()
  email!: string;

  @ValidateNested({ each: true })
  @Type(() => ItemDto)
  @ArrayMinSize(1)
  items!: ItemDto[];

  @IsOptional()
  @IsEnum(Shipping)
  shipping?: Shipping;

  @IsOptional()
  @IsDate()
  @Type(() => Date)
  due?: Date;

  @IsOptional()
  @Matches(/^[A-Z]{2}-\d+$/, { message: 'code looks like AB-12' })
  code?: string;
}

class CardDto {
  @IsIn(['card'])
  kind!: 'card';

  @MinLength(4)
  number!: string;
}

class CashDto {
  @IsIn(['cash'])
  kind!: 'cash';

  @IsInt()
  amount!: number;
}

class PaymentDto {
  @ValidateNested()
  @Type(() => Object, {
    keepDiscriminatorProperty: true,
    discriminator: {
      property: 'kind',
      subTypes: [
        { value: CardDto, name: 'card' },
        { value: CashDto, name: 'cash' },
      ],
    },
  })
  method!: CardDto | CashDto;
}

class FolderDto {
  @IsString()
  name!: string;

  @IsOptional()
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => FolderDto)
  folders?: FolderDto[];
}

class SearchDto {
  @Param({ description: 'Words', minLength: 2 })
  query!: string;

  @Param({ type: () => Integer, minimum: 1, maximum: 50, default: 10 })
  limit = 10;

  @Param({ items: () => String, required: false, uniqueItems: true })
  tags?: string[];

  @Param({ additionalProperties: { type: 'number' }, required: false })
  weights?: Record<string, number>;
}

@Toolset({ name: 'Shop', description: 'What the shop can do' })
class ShopTools {
  @Tool('Find orders of a customer')
  findOrders(@Param('Customer id') customerId: string, limit = 10, isOpen = true, sort = 'newest') {
    return written([customerId, limit, isOpen, sort]);
  }

  @Tool({ description: 'Place an order' })
  placeOrder(order: CreateOrderDto) {
    return written(order);
  }

  @Tool('Pay')
  pay(payment: PaymentDto, context: ToolContext) {
    return written([payment, context.toolName, context.callId, context.attempt]);
  }

  @Tool('Make folders')
  makeFolders(@Args() folder: FolderDto) {
    return written(folder);
  }

  @Tool('Search')
  search(words: SearchDto, @Param({ type: () => Integer, required: false }) page?: number) {
    return written([words, page]);
  }

  @Tool('Plan')
  plan(
    @Param({ type: () => Date }) from: Date,
    @Param({ type: () => Date, required: false }) to?: Date,
    @Param({ enum: Level, required: false }) level?: Level,
    @Param({ enum: ['a', 'b'], nullable: true, required: false }) choice?: 'a' | 'b' | null,
  ) {
    return written([from, to, level, choice]);
  }

  @Tool('Tag')
  tag(
    @Param({ items: () => String, minItems: 1 }) tags: string[],
    @Param({ items: () => ItemDto, required: false }) items?: ItemDto[],
    @Param({ additionalProperties: () => ItemDto, required: false }) byKey?: Record<string, ItemDto>,
    @Param({ type: () => String, nullable: true }) note: string | null = null,
  ) {
    return written([tags, items, byKey, note]);
  }

  @Tool('Count')
  count(
    @Param({ type: () => Integer, minimum: 0, multipleOf: 2 }) even: number,
    @Param({ schema: { type: ['integer', 'string'] } }) either: number | string,
  ) {
    return written([even, either]);
  }
}

const item = { sku: 'a', count: 2 };

const RIGHT: Readonly<Record<string, readonly object[]>> = {
  find_orders: [{ customerId: 'cus_1', limit: 3, isOpen: false, sort: 'oldest' }, { customerId: 'cus_2' }],
  place_order: [
    {
      email: 'a@example.com',
      items: [item],
      shipping: 'express',
      due: '2030-01-02T00:00:00.000Z',
      code: 'AB-1',
    },
  ],
  pay: [{ method: { kind: 'card', number: '4111' } }, { method: { kind: 'cash', amount: 5 } }],
  make_folders: [{ name: 'a', folders: [{ name: 'b', folders: [] }, { name: 'c' }] }],
  search: [{ words: { query: 'lamp', limit: 2, tags: ['x'], weights: { a: 1.5 } }, page: 2 }],
  plan: [
    { from: '2030-01-02', to: '2030-01-03T04:05:06Z', level: 1, choice: 'a' },
    { from: '2030-01-02T00:00:00Z', choice: null },
  ],
  tag: [{ tags: ['a'], items: [item], byKey: { k: item }, note: null }],
  count: [
    { even: 4, either: 'x' },
    { even: 0, either: 7 },
  ],
};

/** Tools of a class: parameters, defaults, nested DTO classes, unions, enums, dates. */
export function declaredTools(): SampledTool[] {
  return discoverTools({ toolsets: [ShopTools] }).map((tool) => ({
    tool,
    name: `shop_${tool.name}`,
    right: RIGHT[tool.name] ?? [],
  }));
}
