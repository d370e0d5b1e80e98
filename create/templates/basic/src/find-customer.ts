import { defineTool } from 'toolwright';
import { z } from 'zod';

const CUSTOMERS = [
  { id: 'cus_1', name: 'Ada Lovelace', city: 'London' },
  { id: 'cus_2', name: 'Grace Hopper', city: 'New York' },
];

/** A tool as a function: the arguments of `execute` have the types of the schema. */
export const findCustomer = defineTool({
  name: 'find_customer',
  description: 'Find customers by a part of their name',
  parameters: z.object({ name: z.string().min(1), limit: z.number().int().default(5) }),
  execute: ({ name, limit }) =>
    CUSTOMERS.filter((customer) => customer.name.toLowerCase().includes(name.toLowerCase())).slice(0, limit),
});
