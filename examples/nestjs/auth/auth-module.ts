import { Module } from '@nestjs/common';
import { Users } from './users.js';

/** The users of the shop, for the modules that need them. */
@Module({ providers: [Users], exports: [Users] })
export class AuthModule {}
