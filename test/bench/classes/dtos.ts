import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsEmail,
  IsIn,
  IsInt,
  IsNumber,
  IsObject,
  IsOptional,
  IsString,
  Length,
  Max,
  Min,
  MinLength,
  ValidateNested,
} from 'class-validator';

/** The arguments of W1. */
export class AddDto {
  @IsNumber() a!: number;
  @IsNumber() b!: number;
}

/** The arguments of W2. */
export class SearchDto {
  @IsString() @Length(1, 200) query!: string;
  @IsIn(['exact', 'fuzzy', 'semantic']) mode!: string;
  @IsOptional() @IsInt() @Min(1) @Max(50) limit?: number;
  @IsOptional() @IsArray() @ArrayMaxSize(10) @IsString({ each: true }) tags?: string[];
}

export class AddressDto {
  @IsString() street!: string;
  @IsString() city!: string;
  @IsString() zip!: string;
  @IsString() @Length(2, 2) country!: string;
}

export class CustomerDto {
  @IsString() @MinLength(1) name!: string;
  @IsEmail() email!: string;
  @ValidateNested() @Type(() => AddressDto) address!: AddressDto;
}

export class ItemDto {
  @IsString() sku!: string;
  @IsInt() @Min(1) quantity!: number;
  @IsNumber() @Min(0) price!: number;
  @IsOptional() @IsString() note?: string;
}

/** The arguments of W3. */
export class CreateOrderDto {
  @ValidateNested() @Type(() => CustomerDto) customer!: CustomerDto;
  @IsArray() @ArrayMinSize(1) @ValidateNested({ each: true }) @Type(() => ItemDto) items!: ItemDto[];
  @IsObject() labels!: Record<string, string>;
}
