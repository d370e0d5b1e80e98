import './toolwright.gen.js';
import { discoverTools, ToolRegistry } from 'toolwright';
import { findCustomer } from './find-customer.js';
import { OrderTools } from './order-tools.js';

/** A new registry; mistakes in declarations are thrown here, all together. */
export function createTools(): ToolRegistry {
  return new ToolRegistry().register(findCustomer, ...discoverTools({ toolsets: [OrderTools] }));
}
