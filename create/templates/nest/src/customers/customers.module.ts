import { Module } from '@nestjs/common';
import { CustomerTools } from './customer.tools.js';

@Module({ providers: [CustomerTools] })
export class CustomersModule {}
