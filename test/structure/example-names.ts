/**
 * A sample application for the examples in docstrings and in the manual. `doc-examples.test.ts` imports names from here
 * that an example uses but does not declare. Nothing here runs.
 */

import type { Client } from '@modelcontextprotocol/client';
import type { Type as SchemaBuilder } from '@sinclair/typebox';
import type { Type as TypeDecorator } from 'class-transformer';
import type {
  Answer,
  CallRequest,
  CallScope,
  Content,
  InjectionToken,
  LLMProvider,
  Message,
  RunState,
  Tool,
  ToolLoopConfig,
  ToolLoopResult,
  ToolRegistry,
} from 'toolwright';
import type { SatelliteClient } from 'toolwright/satellite';
import type { SqliteRunStore } from 'toolwright/stores';
import type { Agents } from 'toolwright/toolbox/agents';

export { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
export { expect, test } from '@jest/globals';
export {
  All,
  Body,
  type CanActivate,
  Controller,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  Module,
  Post,
  Req,
  Res,
} from '@nestjs/common';
export { Test } from '@nestjs/testing';
export { ArrayMinSize, IsEmail, IsEnum, IsOptional, ValidateNested } from 'class-validator';
export { z } from 'zod';

export declare const agents: Agents;

/** Two packages export a `Type`, so this has the members of both. */
export declare const Type: typeof SchemaBuilder & typeof TypeDecorator;

export interface Order {
  readonly id: string;
  readonly customerId: string;
}

export declare class OrderService {
  find(customerId: string, limit?: number): Promise<readonly Order[]>;
  place(order: CreateOrderDto): Promise<Order>;
}

export declare class Mailer {
  statement(userId: unknown, year: number): Promise<string>;
}

export interface NoteQuery {
  readonly limit: number;
  readonly tags?: readonly string[];
  readonly user: unknown;
}

export declare class NoteStore {
  search(words: string, query: NoteQuery): Promise<readonly string[]>;
}

export declare class ShopTools {
  findOrders(customerId: string, limit?: number): Promise<readonly Order[]>;
}

export declare class OrderTools {
  find(customerId: string, limit?: number): Promise<readonly Order[]>;
}

export declare class MailTools {
  constructor(mailer: Mailer);
  send(to: string, text: string): void;
}

export declare class CreateOrderDto {
  sku: string;
  due: Date;
}

export declare class ItemDto {
  sku: string;
}

export declare enum Shipping {
  Standard = 'standard',
  Express = 'express',
}

/** A third-party dependency injection container. */
export interface ForeignContainer {
  get<Instance>(token: InjectionToken<Instance>): Instance;
  createChild(): ForeignContainer & { close(): Promise<void> };
}

export declare const config: ToolLoopConfig;
export declare const state: RunState;
export declare const call: CallRequest;
export declare const scope: CallScope;
export declare const myContainer: ForeignContainer;
export declare function openDatabase(): object;

/** A bank with idempotency keys, which also finds payments by their key. */
export declare class Bank {
  pay(invoice: string, options: { readonly key: string }): Promise<string>;
  find(key: string): Promise<string | undefined>;
  refund(payment: string, options: { readonly key: string }): Promise<void>;
}

/** A database of the application. */
export declare const database: {
  get<Value>(key: string): Promise<Value>;
  set(key: string, value: unknown): Promise<void>;
};

/** The API key of a user for another service. */
export declare function keyOf(user: unknown): Promise<string>;

/** Functions of the application. */
export declare const bank: { charge(key: string): Promise<string>; ship(key: string): Promise<string> };
export declare function findOrders(customerId: string, limit: number): Promise<readonly Order[]>;
export declare function refund(orderId: string): Promise<string>;
export declare function refundOrder(orderId: string): Promise<string>;
export declare function saveState(id: string, state: RunState | undefined): void;

/** The sign-in of the application. */
export declare function userOf(request: Request): { readonly user: string } | undefined;
export declare function roleOf(request: Request): string;
export declare function isClerk(user: string): Promise<boolean>;

/** The base class for an example that is a single method. */
export declare abstract class ExampleToolset {
  readonly orders: OrderService;
}

export declare const fakeOrders: Pick<OrderService, 'find'>;
export declare const provider: LLMProvider;
export declare const messages: readonly Message[];
export declare const tools: ToolRegistry;
export declare const registry: ToolRegistry;
export declare const run: ToolLoopResult;
export declare const store: SqliteRunStore;
export declare const readFile: Tool;
export declare const convert: Tool;
export declare const search: Tool;
export declare const content: Content;
export declare const answers: readonly Answer[];
export declare const runId: string;
export declare const userId: string;

/** Opens a page and returns the final URL after redirects. */
export declare function openBrowser(page: URL): Promise<string>;
export declare const model: string;
export declare const client: Client;
export declare const approvedTools: ReadonlyMap<string, string>;

export declare function askTheUserToGoOn(): void;
export declare function connectToShop(): Promise<Client>;

export declare const satellite: SatelliteClient;

/** The root of a Nest application. */
export declare class AppModule {}
