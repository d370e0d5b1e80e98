import { Module } from '@nestjs/common';
import { Users } from './users.js';

/** Who may use the shop, for whoever has to know. */
@Module({ providers: [Users], exports: [Users] })
export class AuthModule {}
