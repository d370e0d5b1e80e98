import { Injectable } from '@nestjs/common';
import { Param, RetryToolCall, Tool } from 'toolwright';
import { OrderLine, PlaceOrder } from './order.dto.js';
import { OrdersService } from './orders.service.js';

@Injectable()
export class OrderTools {
  constructor(private readonly orders: OrdersService) {}

  @Tool('Place an order')
  placeOrder(order: PlaceOrder) {
    const isValidated = order instanceof PlaceOrder && order.lines.every((line) => line instanceof OrderLine);
    return { id: this.orders.place(order), isValidated };
  }

  @Tool('Show the lines of an order')
  showOrder(@Param('Id of the order, e.g. order_1') id: string, limit = 10) {
    const order = this.orders.find(id);
    if (order === undefined) throw new RetryToolCall(`There is no order ${id}`);
    return order.lines.slice(0, limit);
  }
}
