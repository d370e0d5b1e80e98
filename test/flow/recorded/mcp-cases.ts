import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { type RegisteredTool, ToolRegistry } from 'toolwright';
import { createMcpServer, mcpTools } from 'toolwright/mcp';
import { answeredTools } from './answered-tools.js';
import { outcomeOf } from './call-cases.js';
import type { RecordedCase } from './case.js';
import { declaredTools } from './declared-tools.js';
import { definedTools } from './defined-tools.js';

/** The protocol revisions, with the client options that select each. */
const REVISIONS = {
  '2025-11-25': {},
  '2026-07-28': { versionNegotiation: { mode: { pin: '2026-07-28' } } },
} as const;

const CALLS: readonly (readonly [string, object])[] = [
  ['add', { a: 1, b: 2 }],
  ['add', { a: '1', b: 2 }],
  ['add', { a: 1 }],
  ['add', { a: 1, b: 2, c: 3 }],
  ['echo', { say: 'hi' }],
  ['fail', {}],
  ['picky', { name: 'a' }],
  ['picture', {}],
  ['quiet', {}],
  ['direct', {}],
  ['never', {}],
  ['work', {}],
  ['nobody', {}],
];

/** Tool lists and call results of MCP clients in both protocols, directly and through `mcpTools`. */
export function mcpCases(): RecordedCase[] {
  const sampled = [...declaredTools(), ...definedTools()];
  return Object.entries(REVISIONS).flatMap(([revision, options]) => [
    ...sampled.map(({ tool, name, right }) => ({
      name: `mcp ${revision}: ${name}`,
      run: () =>
        connected([tool], options, async (client) => {
          const { tools } = await client.listTools();
          const answer = await client.callTool({
            name: tools[0]?.name ?? '',
            arguments: (right[0] ?? {}) as never,
          });
          const registry = new ToolRegistry().register(...(await mcpTools(client)));
          return { tools, answer, back: registry.toProviderDefs() };
        }),
    })),
    ...CALLS.map(([name, args], index) => ({
      name: `mcp ${revision} call ${index + 1}: ${name}`,
      run: () =>
        connected(answeredTools(), options, async (client) => {
          const direct = await client
            .callTool({ name, arguments: args as never })
            .catch((thrown: Error) => `!${thrown.message}`);
          const registry = new ToolRegistry().register(...(await mcpTools(client)));
          return { direct, back: outcomeOf(await registry.invoke({ id: 'c1', name, arguments: args }, {})) };
        }),
    })),
  ]);
}

async function connected(
  tools: readonly RegisteredTool[],
  options: object,
  use: (client: Client) => Promise<unknown>,
): Promise<unknown> {
  const server = createMcpServer(new ToolRegistry().register(...tools));
  const [near, far] = InMemoryTransport.createLinkedPair();
  server.connect(far);
  const client = new Client({ name: 'a-client', version: '1.0.0' }, options);
  await client.connect(near);
  try {
    return await use(client);
  } finally {
    await client.close();
    await server.close();
  }
}
