/* toolwright with NestJS and MCP. */
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
import { AllowAllGuard, PassThroughInterceptor } from './nest-enhancers.mjs';
import { registryOf } from './toolwright.mjs';

const SERVER = { name: 'bench', version: '1.0.0' };
const instances = {};

/** `registry.execute` in a Nest application without guards. */
export async function ownNestCall({ tool }) {
  instances.plain ??= start(PlainTools);
  return registryCandidate('**toolwright/nestjs** `registry.execute`', await instances.plain, tool);
}

/** `registry.execute` with a guard and an interceptor on the class. */
export async function ownGuardedNestCall({ tool }) {
  instances.guarded ??= start(guarded());
  return registryCandidate('**toolwright/nestjs**, guard and interceptor', await instances.guarded, tool);
}

/** `tools/call` of a server over a registry. */
export async function ownServerCall({ tool }) {
  instances.server ??= serve(registryOf([PlainTools]));
  return serverCandidate('**toolwright/mcp** `createMcpServer`', await instances.server, tool);
}

/** `tools/call` of a server over the registry of a Nest application. */
export async function ownGuardedServerCall({ tool }) {
  instances.guardedServer ??= start(guarded()).then(serve);
  return serverCandidate(
    '**toolwright/mcp** over **toolwright/nestjs**, guard and interceptor',
    await instances.guardedServer,
    tool,
  );
}

/** `tools/call` over stateless HTTP. */
export function ownHttpCall({ tool }) {
  const { fetch } = createMcpServer(registryOf([PlainTools]), SERVER);
  return httpCandidate('**toolwright/mcp** `fetch`', fetch, { tool });
}

/** `tools/call` over stateless HTTP with `oauth`. */
export async function ownProtectedCall({ tool }) {
  const { token, keys, issuer, resource } = await issueToken();
  const oauth = { resource, issuer, verify: jwks({ keys }) };
  const { fetch } = createMcpServer(registryOf([PlainTools]), { ...SERVER, oauth });
  return httpCandidate('**toolwright/mcp** with `oauth`', fetch, { tool, token });
}

/** Connects to a server with these tools, each like a workload. */
export function ownServer(tools) {
  const definitions = tools.map(({ name, like }) =>
    defineTool({ name, description: name, parameters: jsonSchemas[like], execute: bodyOf(like) }),
  );
  return serve(new ToolRegistry().register(...definitions));
}

function registryCandidate(name, registry, tool) {
  return {
    name,
    encode: (input) => input,
    call: (input) => registry.execute(tool, input),
    read: ({ isError, forLLM }) => (isError ? undefined : forLLM),
  };
}

function guarded() {
  class GuardedTools extends PlainTools {}
  UseGuards(AllowAllGuard)(GuardedTools);
  UseInterceptors(PassThroughInterceptor)(GuardedTools);
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
