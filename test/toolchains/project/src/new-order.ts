import { Type } from 'class-transformer';
import { IsEmail, IsInt, Length, Max, Min, ValidateNested } from 'class-validator';

/** One line of an order. */
export class NewLine {
  /** Stock keeping unit. */
  @Length(1, 20)
  sku!: string;

  @IsInt()
  @Min(1)
  @Max(99)
  quantity = 1;
}

/** An order to place. */
export class NewOrder {
  @IsEmail()
  email!: string;

  @ValidateNested({ each: true })
  @Type(() => NewLine)
  lines!: NewLine[];

  /** The day it is wanted. */
  due?: Date;
}

/** A node of a tree. */
export class Branch {
  name!: string;
  branches?: Branch[];
}
