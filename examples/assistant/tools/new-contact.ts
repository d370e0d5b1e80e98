import { IsEmail, IsEnum, IsOptional, IsString, Length } from 'class-validator';
import { Param } from 'toolwright/decorators';
import { ContactKind } from '../services/contact-book.js';

/** The arguments of `add_contact`. */
export class NewContact {
  @Param('Full name')
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

  @Param({ description: 'What the contact is to us', default: ContactKind.Customer })
  @IsOptional()
  @IsEnum(ContactKind)
  readonly kind?: ContactKind;
}
