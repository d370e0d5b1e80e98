import { IsInt, IsString, Max, MaxLength, Min } from 'class-validator';

/** What an order is placed with. */
export class NewOrder {
  @IsString()
  @MaxLength(40)
  item!: string;

  @IsInt()
  @Min(1)
  @Max(1000)
  quantity!: number;
}
