import { Type } from 'class-transformer';
import { ArrayMinSize, IsEmail, IsInt, IsString, Max, Min, ValidateNested } from 'class-validator';

export class OrderLine {
  /** What is ordered, e.g. tea-1 */
  @IsString()
  sku: string;

  @IsInt()
  @Min(1)
  @Max(99)
  quantity: number;
}

export class PlaceOrder {
  /** Where the receipt goes */
  @IsEmail()
  email: string;

  @ValidateNested({ each: true })
  @ArrayMinSize(1)
  @Type(() => OrderLine)
  lines: OrderLine[];
}
