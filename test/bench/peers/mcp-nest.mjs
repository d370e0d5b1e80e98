/* mcp-nest: the server of a NestJS microservice with a transport in memory. */
import 'reflect-metadata';
import { Module, UseGuards, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Payload } from '@nestjs/microservices';
import { McpController, McpStrategy, Tool } from '@rekog/mcp-nest';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';
import { MemoryTransport, serverCandidate } from './memory-transport.mjs';
import { AllowAllGuard, PassThroughInterceptor } from './nest-enhancers.mjs';

const WORKLOADS = Object.keys(zodSchemas).map((name) => ({ name, like: name }));

const connections = {};

/** `tools/call` of a server with the workloads, which is started once. */
export async function nestCall({ tool }) {
  connections.plain ??= start(WORKLOADS, []);
  return serverCandidate('mcp-nest `tools/call` in memory (zod)', await connections.plain, tool);
}

/** `tools/call` with a guard and an interceptor on the class. */
export async function guardedNestCall({ tool }) {
  connections.guarded ??= start(WORKLOADS, [
    UseGuards(AllowAllGuard),
    UseInterceptors(PassThroughInterceptor),
  ]);
  return serverCandidate('mcp-nest (zod), guard and interceptor', await connections.guarded, tool);
}

/** Connects to a server with these tools, each like a workload. */
export function nestServer(tools) {
  return start(tools, []);
}

async function start(tools, decorators) {
  let server;
  const memory = { kind: 'stdio', start: (context) => (server = context), close: () => {} };
  const strategy = new McpStrategy({ name: 'bench', version: '1.0.0', transports: [memory] });
  const app = await NestFactory.createMicroservice(createModule(tools, decorators), {
    strategy,
    logger: false,
  });
  await app.listen();
  return MemoryTransport.open((transport) => server.createBoundServer({}).connect(transport));
}

/** Decorators are called as functions, because these files are not compiled. */
function createModule(tools, decorators) {
  class Tools {}
  for (const { name, like } of tools) {
    const body = bodyOf(like);
    const value = async (input) => ({ content: [{ type: 'text', text: String(body(input)) }] });
    Object.defineProperty(Tools.prototype, name, { value, writable: true, configurable: true });
    Payload()(Tools.prototype, name, 0);
    Tool({ name, description: name, parameters: zodSchemas[like] })(Tools.prototype, name, { value });
  }
  for (const decorate of [McpController(), ...decorators]) decorate(Tools);
  class BenchModule {}
  Module({ controllers: [Tools] })(BenchModule);
  return BenchModule;
}
