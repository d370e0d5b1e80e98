import './toolwright.gen.js';
import { discoverTools, ToolRegistry } from 'toolwright';
import { findCustomer } from './find-customer.js';
import { OrderTools } from './order-tools.js';

/** All tools; mistakes in declarations are thrown here, all together. */
export const tools = new ToolRegistry().register(findCustomer, ...discoverTools({ toolsets: [OrderTools] }));
