/**
 * What the examples in docstrings leave out: an application around them. `doc-examples.test.ts` imports from
 * here what an example uses and does not declare. Only types: nothing of this runs.
 */
import type { Content, LLMProvider, Message, Tool, ToolLoopResult, ToolRegistry } from 'toolwright';

export { expect } from '@jest/globals';
export { Type } from '@sinclair/typebox';
export { z } from 'zod';

export interface Order {
  readonly id: string;
  readonly customerId: string;
}

export declare class OrderService {
  find(customerId: string, limit?: number): Promise<readonly Order[]>;
}

export declare class ShopTools {
  findOrders(customerId: string, limit?: number): Promise<readonly Order[]>;
}

export declare class MailTools {
  send(to: string, text: string): void;
}

export declare class CreateOrderDto {
  sku: string;
  due: Date;
}

/** What a method that stands alone in an example finds on `this`. */
export declare abstract class ExampleToolset {
  readonly orders: OrderService;
}

export declare const fakeOrders: Pick<OrderService, 'find'>;
export declare const provider: LLMProvider;
export declare const messages: readonly Message[];
export declare const tools: ToolRegistry;
export declare const registry: ToolRegistry;
export declare const run: ToolLoopResult;
export declare const readFile: Tool;
export declare const search: Tool;
export declare const content: Content;

export declare function askTheUserToGoOn(): void;
