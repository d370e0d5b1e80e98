/* mcp-nest: the server of a NestJS microservice, asked over a transport in memory. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Payload } from '@nestjs/microservices';
import { McpController, McpStrategy, Tool } from '@rekog/mcp-nest';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A client's end, as small as it can be: sends requests and waits for the reply of the same id. */
class MemoryTransport {
  #waiting = new Map();
  #requests = 0;

  async start() {}

  async close() {}

  async send(message) {
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }

  request(method, params) {
    this.#requests += 1;
    const id = this.#requests;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.onmessage({ jsonrpc: '2.0', id, method, params });
    });
  }
}

let opened;

/** `tools/call` of a server with the three workloads, which is started once. */
export async function nestCall({ tool }) {
  opened ??= open();
  const transport = await opened;
  return {
    name: 'mcp-nest `tools/call` in memory (zod)',
    encode: (input) => input,
    call: (input) => transport.request('tools/call', { name: tool, arguments: input }),
    read: ({ result }) => (result === undefined || result.isError ? undefined : result.content[0].text),
  };
}

async function open() {
  let server;
  const memory = { kind: 'stdio', start: (context) => (server = context), close: () => {} };
  const strategy = new McpStrategy({ name: 'bench', version: '1.0.0', transports: [memory] });
  const app = await NestFactory.createMicroservice(createModule(), { strategy, logger: false });
  await app.listen();
  const transport = new MemoryTransport();
  await server.createBoundServer({}).connect(transport);
  await transport.request('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1.0.0' },
  });
  return transport;
}

/** The decorators by hand, because these files are not compiled. */
function createModule() {
  class Tools {}
  for (const [name, parameters] of Object.entries(zodSchemas)) {
    const body = bodyOf(name);
    const value = async (input) => ({ content: [{ type: 'text', text: String(body(input)) }] });
    Object.defineProperty(Tools.prototype, name, { value, writable: true, configurable: true });
    Payload()(Tools.prototype, name, 0);
    Tool({ name, description: name, parameters })(Tools.prototype, name, { value });
  }
  McpController()(Tools);
  class BenchModule {}
  Module({ controllers: [Tools] })(BenchModule);
  return BenchModule;
}
