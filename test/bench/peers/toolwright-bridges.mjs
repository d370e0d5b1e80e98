/* Ours where users already are: tools of a Nest application, and tools of an MCP server. */
import 'reflect-metadata';
import { Module, UseGuards, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { defineTool, ToolRegistry } from '#toolwright';
import { createMcpServer, jwks } from '#toolwright/mcp';
import { ToolwrightModule } from '#toolwright/nestjs';
import { PlainTools } from '../.build/classes/toolsets.js';
import { jsonSchemas } from '../json-schemas.mjs';
import { bodyOf } from '../workloads.mjs';
import { httpCandidate, issueToken } from './http-requests.mjs';
import { MemoryTransport, serverCandidate } from './memory-transport.mjs';
import { LetsPass, PassesOn } from './nest-enhancers.mjs';
import { registryOf } from './toolwright.mjs';

const SERVER = { name: 'bench', version: '1.0.0' };
const open = {};

/** `registry.execute` in a Nest application, with nothing around the method. */
export async function ourNestCall({ tool }) {
  open.plain ??= start(PlainTools);
  return executing('**toolwright/nestjs** `registry.execute`', await open.plain, tool);
}

/** The same with a guard and an interceptor on its class. */
export async function ourGuardedNestCall({ tool }) {
  open.guarded ??= start(guarded());
  return executing('**toolwright/nestjs**, guard and interceptor', await open.guarded, tool);
}

/** `tools/call` of a server over a registry. */
export async function ourServerCall({ tool }) {
  open.server ??= serve(registryOf([PlainTools]));
  return serverCandidate('**toolwright/mcp** `createMcpServer`', await open.server, tool);
}

/** `tools/call` of a server over the registry of a Nest application. */
export async function ourGuardedServerCall({ tool }) {
  open.guardedServer ??= start(guarded()).then(serve);
  return serverCandidate(
    '**toolwright/mcp** over **toolwright/nestjs**, guard and interceptor',
    await open.guardedServer,
    tool,
  );
}

/** `tools/call` over stateless HTTP. */
export function ourHttpCall({ tool }) {
  const { fetch } = createMcpServer(registryOf([PlainTools]), SERVER);
  return httpCandidate('**toolwright/mcp** `fetch`', fetch, { tool });
}

/** The same with `oauth`. */
export async function ourProtectedCall({ tool }) {
  const { token, keys, issuer, resource } = await issueToken();
  const oauth = { resource, issuer, verify: jwks({ keys }) };
  const { fetch } = createMcpServer(registryOf([PlainTools]), { ...SERVER, oauth });
  return httpCandidate('**toolwright/mcp** with `oauth`', fetch, { tool, token });
}

/** A connection to a server with some tools, each like one of the workloads. */
export function ourServer(tools) {
  const made = tools.map(({ name, like }) =>
    defineTool({ name, description: name, parameters: jsonSchemas[like], execute: bodyOf(like) }),
  );
  return serve(new ToolRegistry().register(...made));
}

function executing(name, registry, tool) {
  return {
    name,
    encode: (input) => input,
    call: (input) => registry.execute(tool, input),
    read: ({ isError, forLLM }) => (isError ? undefined : forLLM),
  };
}

function guarded() {
  class GuardedTools extends PlainTools {}
  UseGuards(LetsPass)(GuardedTools);
  UseInterceptors(PassesOn)(GuardedTools);
  return GuardedTools;
}

async function start(toolset) {
  class BenchModule {}
  Module({ imports: [ToolwrightModule.forRoot()], providers: [toolset] })(BenchModule);
  const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['error'] });
  return app.get(ToolRegistry);
}

function serve(registry) {
  const server = createMcpServer(registry, SERVER);
  return MemoryTransport.open((transport) => server.connect(transport));
}
