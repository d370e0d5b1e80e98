import { setTimeout as pause } from 'node:timers/promises';
import {
  defineTool,
  discoverTools,
  Param,
  Tool,
  ToolContext,
  type ToolPolicy,
  ToolRegistry,
  Toolset,
} from 'toolwright';

const TREE = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'What it is called' },
    size: { anyOf: [{ type: 'integer', minimum: 1 }, { enum: ['small', 'large'] }, { type: 'null' }] },
    point: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }], items: false },
    children: { type: 'array', items: { $ref: '#/$defs/node' } },
  },
  required: ['name', 'size'],
  $defs: {
    node: {
      type: 'object',
      properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
      required: ['name'],
    },
  },
} as const;

@Toolset({ description: 'Orders of a shop' })
class ShopTools {
  @Tool({ description: 'Find orders of a customer', annotations: { readOnly: true } })
  async findOrders(@Param('Customer id, e.g. cus_1') customerId: string, limit = 10, context?: ToolContext) {
    context?.progress({ done: 1, total: 2 });
    await pause(1);
    return { customerId, limit, user: userOf(context) ?? null };
  }

  @Tool({ description: 'Place an order', approval: true })
  placeOrder(sku: string, amount: number) {
    return `Placed ${amount} of ${sku}`;
  }

  @Tool('Book a journey')
  async book(city: string, context: ToolContext) {
    const sure = await context.ask({ message: `${city}, sure?`, schema: { type: 'boolean' } });
    return sure ? `Booked ${city}` : 'Not booked';
  }
}

function userOf(context: ToolContext | undefined): unknown {
  return context && Reflect.get(context.data, 'user');
}

/** A hostile text that the tests place wherever others can write text. */
export const HOSTILE =
  '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202e\u001b[31m\u0000';

const onlyForUsers: ToolPolicy = ({ tool, context }) =>
  tool.name !== 'secret' || userOf(context) === 'admin' || { allow: false, reason: 'for admins' };

/** A registry with tools of every kind that the inspector shows. */
export function shop(): ToolRegistry {
  return new ToolRegistry({ policy: onlyForUsers }).register(
    ...discoverTools({ toolsets: [ShopTools] }),
    defineTool({
      name: 'plant',
      description: 'Plant a tree of things',
      parameters: TREE,
      execute: (args: unknown) => args,
    }),
    defineTool({ name: 'secret', description: 'For few', execute: () => 'told' }),
    defineTool({
      name: 'hostile',
      description: HOSTILE,
      parameters: { type: 'object', properties: { [HOSTILE]: { type: 'string', description: HOSTILE } } },
      execute: () => ({ text: HOSTILE, long: 'x'.repeat(1_000_000) }),
    }),
  );
}

/** A registry with a tool whose form has a union and which causes many warnings. */
export function payments(): ToolRegistry {
  const card = {
    type: 'object',
    properties: { kind: { const: 'card' }, token: { type: 'string' } },
    required: ['kind', 'token'],
  };
  const account = {
    title: 'On account',
    type: 'object',
    properties: { kind: { const: 'account' }, days: { type: 'integer' } },
    required: ['kind'],
  };
  const tags = { type: 'array', items: { type: 'string' } };
  return new ToolRegistry().register({
    name: 'pay',
    description: '',
    parameters: { type: 'object', properties: { by: { oneOf: [card, account] }, tags }, required: ['by'] },
    execute: (args: unknown) => args,
  } as never);
}
