import { Module } from '@nestjs/common';
import { OrderTools } from './order.tools.js';
import { OrdersService } from './orders.service.js';

@Module({ providers: [OrdersService, OrderTools] })
export class OrdersModule {}
