import { Type } from 'class-transformer';
import { ArrayMinSize, IsEmail, IsInt, IsString, Max, Min, ValidateNested } from 'class-validator';

export class OrderLine {
  /** What is ordered, e.g. green-tea */
  @IsString()
  sku: string;

  @IsInt()
  @Min(1)
  @Max(99)
  quantity: number;
}

export class PlaceOrder {
  /** Where the receipt is sent */
  @IsEmail()
  email: string;

  @ValidateNested({ each: true })
  @ArrayMinSize(1)
  @Type(() => OrderLine)
  lines: OrderLine[];
}
