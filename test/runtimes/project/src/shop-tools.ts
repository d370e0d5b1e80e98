import { Exclude, Type } from 'class-transformer';
import { IsEmail, IsInt, Length, Max, Min, ValidateNested } from 'class-validator';
import { Param, Tool, ToolContext, Toolset } from 'toolwright/decorators';
import { injectable } from 'tsyringe';

@injectable()
export class Clock {
  now(): Date {
    return new Date(0);
  }
}

@injectable()
export class Ledger {
  constructor(readonly clock: Clock) {}

  stamp(): string {
    return this.clock.now().toISOString();
  }
}

export class NewLine {
  @Length(1, 20)
  sku!: string;

  @IsInt()
  @Min(1)
  @Max(99)
  quantity = 1;
}

export class NewOrder {
  @IsEmail()
  email!: string;

  @ValidateNested({ each: true })
  @Type(() => NewLine)
  lines!: NewLine[];

  /** Set by the shop, never by a model. */
  @Exclude()
  discount = 0;
}

@Toolset({ prefix: 'shop' })
export class ShopTools {
  constructor(private readonly ledger: Ledger) {}

  @Tool('Place an order')
  place(order: NewOrder): string {
    const isReal = order instanceof NewOrder && order.lines.every((line) => line instanceof NewLine);
    return `${isReal} ${order.discount} ${order.lines.map(({ sku, quantity }) => `${quantity} ${sku}`).join()}`;
  }

  @Tool('Find orders')
  find(
    @Param({
      description: 'A day, a month or an amount',
      schema: {
        anyOf: [
          { type: 'string', format: 'date' },
          { type: 'string', pattern: '^\\d{4}-(0[1-9]|1[0-2])$' },
          { type: 'object', properties: { atLeast: { type: 'number' } }, required: ['atLeast'] },
        ],
      },
    })
    by: string | { atLeast: number },
    @Param({ schema: { type: 'object', properties: { size: { type: 'integer' } } } })
    page: { size: number } = { size: 20 },
    context?: ToolContext,
  ): { found: string; at: string } {
    return { found: `${JSON.stringify(by)} ${page.size} ${context?.toolName}`, at: this.ledger.stamp() };
  }
}
