import { defineTool, ToolRegistry } from 'toolwright';
import { z } from 'zod';

const orders = new Map([['ord_1', { id: 'ord_1', item: 'Green tea, 100 g', total: 12.5, state: 'shipped' }]]);

const showOrder = defineTool({
  name: 'show_order',
  description: 'Show an order',
  parameters: z.object({ orderId: z.string().describe('Id of the order, e.g. ord_1') }),
  annotations: { readOnly: true },
  execute: ({ orderId }) => orders.get(orderId) ?? `There is no order ${orderId}.`,
});

const refundOrder = defineTool({
  name: 'refund_order',
  description: 'Refund an order',
  parameters: z.object({
    orderId: z.string().describe('Id of the order, e.g. ord_1'),
    reason: z.enum(['damaged', 'late', 'other']).default('other'),
  }),
  // The chat waits until the user has approved the call.
  approval: true,
  execute: ({ orderId, reason }) => {
    const order = orders.get(orderId);
    if (order === undefined) return `There is no order ${orderId}.`;
    order.state = 'refunded';
    return `${order.total} EUR were refunded (${reason}).`;
  },
});

export const tools = new ToolRegistry().register(showOrder, refundOrder);
