import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { type ContentPart, type JsonObject, type ToolMessage, ToolRegistry } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';
import { ToolwrightModule, ToolwrightService } from 'toolwright/nestjs';
import { ScriptedProvider } from 'toolwright/testing';
import { type Bridge, ConformanceTools, conformancePolicy, describeBridge } from './bridge-conformance.js';

const mediaOf = (parts: readonly ContentPart[] = []) =>
  parts.flatMap((part) => (part.type === 'text' ? [] : [part.mimeType]));

const dataOf = (userId: string | undefined) => (userId === undefined ? {} : { data: { userId } });

/** Enhancers that let everything pass, so results must be the same as without them. */
const PASSING = [
  { provide: APP_GUARD, useValue: { canActivate: () => true } },
  {
    provide: APP_INTERCEPTOR,
    useValue: { intercept: (_context: ExecutionContext, next: CallHandler) => next.handle() },
  },
  { provide: APP_PIPE, useValue: { transform: (value: unknown) => value } },
];

async function bootNest(providers: readonly object[]) {
  const module = await Test.createTestingModule({
    imports: [ToolwrightModule.forRoot({ policy: conformancePolicy, exposeErrors: true, model: 'scripted' })],
    providers: [ConformanceTools, ...providers] as never,
  }).compile();
  module.useLogger(false);
  await module.init();
  return module;
}

for (const [name, providers] of [
  ['NestJS', []],
  ['NestJS with enhancers', PASSING],
] as const) {
  describeBridge(`the registry of ${name}`, async (): Promise<Bridge> => {
    const module = await bootNest(providers);
    const tools = module.get(ToolRegistry);
    return {
      async call(tool, args, userId) {
        const result = await tools.executeWithContext(tool, args, dataOf(userId));
        return { text: result.forLLM, isError: result.isError, media: mediaOf(result.content) };
      },
      close: () => module.close(),
    };
  });

  describeBridge(`the loop of ${name}`, async (): Promise<Bridge> => {
    const module = await bootNest(providers);
    const toolwright = module.get(ToolwrightService);
    return {
      async call(tool, args, userId) {
        const provider = new ScriptedProvider([
          { content: '', toolCalls: [{ id: 'call_1', name: tool, arguments: args as JsonObject }] },
          { content: 'done' },
        ]);
        const run = await toolwright.run([], { ...dataOf(userId), config: { provider } });
        const message = run.messages.find((one): one is ToolMessage => one.role === 'tool');
        const isError = run.toolCalls[0]?.result.isError ?? true;
        return { text: message?.content ?? '', isError, media: mediaOf(message?.parts) };
      },
      close: () => module.close(),
    };
  });
}

describeBridge('MCP in NestJS', async (): Promise<Bridge> => {
  const module = await bootNest(PASSING);
  const tools = module.get(ToolRegistry);
  return {
    unknownToolThrows: true,
    async call(tool, args, userId) {
      const server = createMcpServer(tools, { scope: () => dataOf(userId) });
      const [near, far] = InMemoryTransport.createLinkedPair();
      server.connect(far);
      const client = new Client({ name: 'a-client', version: '1.0.0' });
      await client.connect(near);
      try {
        const { content, isError = false } = await client.callTool({ name: tool, arguments: args as never });
        // Blocks whose audience is only the user are not sent to the model.
        const texts = content.flatMap((block) =>
          block.type === 'text' && block.annotations === undefined ? [block.text] : [],
        );
        const media = content.flatMap((block) => {
          if (block.type === 'resource') return [block.resource.mimeType ?? ''];
          return block.type === 'image' ? [block.mimeType] : [];
        });
        return { text: texts.join('\n'), isError, media };
      } finally {
        await client.close();
        await server.close();
      }
    },
    close: () => module.close(),
  };
});
