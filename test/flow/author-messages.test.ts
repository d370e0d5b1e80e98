import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Type } from 'class-transformer';
import { IsInt, IsString, Matches, Min, registerDecorator, ValidateNested } from 'class-validator';
import { discoverTools, Tool, ToolRegistry, Toolset } from 'toolwright';

function IsEven() {
  return (target: object, propertyName: string): void =>
    registerDecorator({
      name: 'isEven',
      target: target.constructor,
      propertyName,
      validator: { validate: (value) => Number(value) % 2 === 0, defaultMessage: () => 'must be even' },
    });
}

class Address {
  @Matches(/^[0-9]{5}$/, { message: 'Bitte eine fünfstellige Postleitzahl' })
  zip!: string;

  @IsString()
  city!: string;
}

class Order {
  @IsInt()
  @Min(1, { message: 'order at least one' })
  count!: number;

  @IsInt()
  @IsEven()
  pairs!: number;

  @ValidateNested()
  @Type(() => Address)
  address!: Address;
}

@Toolset()
class Shop {
  @Tool('Order')
  order(order: Order) {
    return order.count;
  }
}

async function linesOf(args: object): Promise<readonly string[]> {
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Shop] }));
  return (await tools.call({ name: 'order', arguments: args })).content.split('\n').slice(1, -1);
}

describe('ToolRegistry.call with class-validator rules', () => {
  test('reports messages of the author first, and custom rules in the same answer', async () => {
    const address = { zip: 'x', city: 'Ulm' };
    expect(await linesOf({ count: 0, pairs: 3, address })).toEqual([
      '  - count: order at least one',
      '  - count: must be >= 1',
      '  - address.zip: Bitte eine fünfstellige Postleitzahl',
      '  - address.zip: must match pattern "^[0-9]{5}$"',
      '  - pairs: must be even',
    ]);
  });

  test('reports a fault once if the rule has no custom message', async () => {
    expect(await linesOf({ count: 'x', pairs: 2, address: { zip: '12345', city: 5 } })).toEqual([
      '  - count: order at least one',
      '  - count: must be integer',
      '  - address.city: must be string',
    ]);
    expect(await linesOf({ count: '2', pairs: 2, address: 7 })).toEqual(['  - address: must be object']);
  });
});
