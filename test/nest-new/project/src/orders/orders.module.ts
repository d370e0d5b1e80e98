import { Module } from '@nestjs/common';
import { OrderTools } from './order.tools.js';
import { OrdersController } from './orders.controller.js';
import { OrdersService } from './orders.service.js';

@Module({
  controllers: [OrdersController],
  providers: [OrdersService, OrderTools],
})
export class OrdersModule {}
