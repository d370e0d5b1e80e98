import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import {
  type ContentPart,
  type JsonObject,
  runToolLoop,
  type ToolMessage,
  ToolRegistry,
  type ToolResult,
} from 'toolwright';
import { createMcpServer, mcpTools } from 'toolwright/mcp';
import { ScriptedProvider } from 'toolwright/testing';
import { ERAS } from '../parts/mcp/mcp-connections.js';
import { type Bridge, type BridgeAnswer, conformanceTools, describeBridge } from './bridge-conformance.js';

const mediaOf = (parts: readonly ContentPart[] = []) =>
  parts.flatMap((part) => (part.type === 'text' ? [] : [part.mimeType]));

function answerOf({ forLLM, isError, content }: ToolResult): BridgeAnswer {
  return { text: forLLM, isError, media: mediaOf(content) };
}

const dataOf = (userId: string | undefined) => (userId === undefined ? {} : { data: { userId } });

/** Makes this call in a run. */
async function callInLoop(tools: ToolRegistry, call: { tool: string; args: unknown; userId?: string }) {
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'call_1', name: call.tool, arguments: call.args as JsonObject }] },
    { content: 'done' },
  ]);
  const config = { provider, model: 'scripted', tools };
  const run = await runToolLoop(config, [{ role: 'user', content: 'go' }], dataOf(call.userId));
  const message = run.messages.find((one): one is ToolMessage => one.role === 'tool');
  const isError = run.toolCalls[0]?.result.isError ?? true;
  return { text: message?.content ?? '', isError, media: mediaOf(message?.parts) };
}

/** One client per user, because an MCP connection belongs to one user. */
function overMcp(options: object): Bridge & { clientFor(userId?: string): Promise<Client> } {
  const tools = conformanceTools();
  const closing: { close(): Promise<unknown> }[] = [];
  async function clientFor(userId?: string): Promise<Client> {
    const server = createMcpServer(tools, { scope: () => dataOf(userId) });
    const [near, far] = InMemoryTransport.createLinkedPair();
    server.connect(far);
    const client = new Client({ name: 'a-client', version: '1.0.0' }, options);
    await client.connect(near);
    closing.push(client, server);
    return client;
  }
  return {
    clientFor,
    unknownToolThrows: true,
    async call(tool, args, userId) {
      const client = await clientFor(userId);
      const { content, isError = false } = await client.callTool({ name: tool, arguments: args as never });
      // Blocks with annotations are for the user only.
      const texts = content.flatMap((block) =>
        block.type === 'text' && block.annotations === undefined ? [block.text] : [],
      );
      const media = content.flatMap((block) => {
        if (block.type === 'resource') return [block.resource.mimeType ?? ''];
        return 'mimeType' in block && block.type !== 'resource_link' ? [block.mimeType] : [];
      });
      return { text: texts.join('\n'), isError, media };
    },
    async close() {
      for (const one of closing) await one.close();
    },
  };
}

describeBridge('the registry', () => {
  const tools = conformanceTools();
  return {
    call: async (tool, args, userId) => answerOf(await tools.executeWithContext(tool, args, dataOf(userId))),
  };
});

describeBridge('the loop', () => {
  const tools = conformanceTools();
  return { call: (tool, args, userId) => callInLoop(tools, { tool, args, userId }) };
});

for (const [era, options] of Object.entries(ERAS)) {
  describeBridge(`MCP ${era}`, () => overMcp(options));

  describeBridge(`MCP ${era}, imported into another registry`, () => {
    const { clientFor, close } = overMcp(options);
    return {
      close,
      async call(tool, args, userId) {
        const imported = new ToolRegistry().register(...(await mcpTools(await clientFor(userId))));
        return answerOf(await imported.execute(tool, args));
      },
    };
  });
}
