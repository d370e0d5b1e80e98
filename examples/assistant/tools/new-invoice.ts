import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsInt,
  IsNumber,
  IsOptional,
  IsString,
  Length,
  Max,
  Min,
  ValidateNested,
} from 'class-validator';

/** One line of an invoice to write. */
export class NewInvoiceLine {
  /** What was delivered */
  @IsString()
  @Length(1, 200)
  readonly description!: string;

  @IsInt()
  @Min(1)
  @Max(10_000)
  readonly quantity!: number;

  /** Price of one, in euros */
  @IsNumber({ maxDecimalPlaces: 2 })
  @Min(0)
  @Max(1_000_000)
  readonly unitPrice!: number;
}

/** The arguments of `create_invoice`. */
export class NewInvoice {
  /** Name or company of a contact */
  @IsString()
  @Length(1, 100)
  readonly customer!: string;

  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(50)
  @ValidateNested({ each: true })
  @Type(() => NewInvoiceLine)
  readonly lines!: NewInvoiceLine[];

  /** Days until it is due @default 30 */
  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(365)
  readonly dueInDays?: number;
}
