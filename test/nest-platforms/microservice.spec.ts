import type { AddressInfo, Server } from 'node:net';
import { expect, test } from '@jest/globals';
import { type CanActivate, Controller, type ExecutionContext, Get, Inject, Injectable } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ClientProxyFactory, MessagePattern, Payload, Transport } from '@nestjs/microservices';
import { IsInt } from 'class-validator';
import { firstValueFrom } from 'rxjs';
import { Tool, ToolRegistry } from 'toolwright';
import { ToolwrightService, toolCallOf } from 'toolwright/nestjs';
import { Caller, CallerTools } from './callers.js';
import { listen } from './listen.js';
import { promptFor, provider } from './model.js';

const contexts: string[] = [];

@Injectable()
class ContextGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    contexts.push(`${context.getType()} ${toolCallOf(context)?.tool.name ?? context.getHandler().name}`);
    return true;
  }
}

class NumberDto {
  @IsInt()
  n!: number;
}

@Controller()
class ChatHandlers {
  constructor(@Inject(ToolwrightService) private readonly toolwright: ToolwrightService) {}

  @MessagePattern('as-user')
  async asUser(@Payload() { user, tool }: { readonly user: string; readonly tool: string }) {
    return (await this.toolwright.run(promptFor(tool), { request: { user } })).content;
  }

  @MessagePattern('anonymous')
  async anonymous(@Payload() { tool }: { readonly tool: string }) {
    return (await this.toolwright.run(promptFor(tool))).content;
  }

  @MessagePattern('double')
  @Tool('Double a number')
  double(@Payload() { n }: NumberDto) {
    return n * 2;
  }

  @Get()
  async overHttp() {
    return (await this.toolwright.run(promptFor('who'))).content;
  }
}

async function connect() {
  let server: Server | undefined;
  const { app, url } = await listen({
    options: { provider, model: 'm' },
    controllers: [ChatHandlers],
    providers: [Caller, CallerTools, { provide: APP_GUARD, useClass: ContextGuard }],
    before: async (app) => {
      const options = { transport: Transport.TCP as const, options: { host: '127.0.0.1', port: 0 } };
      const microservice = app.connectMicroservice(options, { inheritAppConfig: true });
      await app.startAllMicroservices();
      server = microservice.unwrap<Server>();
    },
  });
  const { port } = server!.address() as AddressInfo;
  const client = ClientProxyFactory.create({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port },
  });
  const send = (pattern: string, data: object): Promise<string> => firstValueFrom(client.send(pattern, data));
  return { app, url, client, send };
}

test('a message handler runs the loop for the request that it passes, and anonymously without a request', async () => {
  const { url, client, send } = await connect();
  contexts.length = 0;
  const users = Array.from({ length: 20 }, (_, index) => `user-${index}`);
  const answers = await Promise.all(users.map((user) => send('as-user', { user, tool: 'who' })));
  expect(answers.map((answer) => answer.split(' ')[0])).toEqual(users);
  expect(await send('anonymous', { tool: 'who' })).toMatch(/^anonymous \d+$/);
  expect(new Set(contexts)).toEqual(new Set(['rpc asUser', 'rpc anonymous', 'tool who']));
  const overHttp = await fetch(url, { headers: { authorization: 'ada' } });
  expect(await overHttp.text()).toMatch(/^ada \d+$/);
  client.close();
});

test('a message handler can also be a tool', async () => {
  const { app, client, send } = await connect();
  const tools = app.get(ToolRegistry);
  expect((await tools.execute('double', { n: 4 })).forLLM).toBe('8');
  expect((await tools.execute('double', { n: 'four' })).isError).toBe(true);
  expect(await send('double', { n: 4 })).toBe(8);
  client.close();
});
