import { IsEmail, IsEnum, IsOptional, IsString, Length } from 'class-validator';
import { ContactKind } from '../services/contact-book.js';

/** The arguments of `add_contact`. */
export class NewContact {
  /** Full name */
  @IsString()
  @Length(1, 100)
  readonly name!: string;

  @IsEmail()
  readonly email!: string;

  @IsOptional()
  @IsString()
  @Length(3, 40)
  readonly phone?: string;

  @IsOptional()
  @IsString()
  @Length(1, 100)
  readonly company?: string;

  /** What the contact is to us @default customer */
  @IsOptional()
  @IsEnum(ContactKind)
  readonly kind?: ContactKind;
}
