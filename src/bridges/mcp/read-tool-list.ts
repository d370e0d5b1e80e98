import type { Client, Tool as McpTool, StandardSchemaV1 } from '@modelcontextprotocol/client';
import { isRecord } from '../../kernel/is-record.js';
import { isReadable, passOverMalformed } from './pass-over-malformed.js';

/** A page as the server sent it. The SDK's own reader puts the keys of a schema into another order. */
interface RawPage {
  readonly tools?: unknown;
  readonly nextCursor?: unknown;
}

/** A Standard Schema that takes everything as it is. */
const AS_SENT: StandardSchemaV1<unknown, RawPage> = {
  '~standard': { version: 1, vendor: 'toolwright', validate: (value) => ({ value: value as RawPage }) },
};

/** A server that always has one more page has no list. */
const MOST_PAGES = 1_000;

/** A server's tools from the first page to the last, byte for byte; what is no tool is passed over. */
export async function readToolList(client: Client): Promise<McpTool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  if (client.transport !== undefined && isModern(client)) passOverMalformed(client.transport);
  const tools: McpTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const { tools: found, nextCursor } = await client.request({ method: 'tools/list', params }, AS_SENT);
    if (Array.isArray(found)) tools.push(...found.filter(isTool));
    if (typeof nextCursor !== 'string' || nextCursor === cursor) return usable(client, tools);
    cursor = nextCursor;
  }
  throw new Error(`The server's list of tools has more than ${MOST_PAGES} pages.`);
}

/** Since 2026-07-28 a client must pass over tools whose headers are declared wrongly; the SDK knows which. */
async function usable(client: Client, tools: McpTool[]): Promise<McpTool[]> {
  if (!isModern(client)) return tools;
  const known = await client.listTools(undefined, { cacheMode: 'refresh' });
  const names = new Set(known.tools.map(({ name }) => name));
  return tools.filter(({ name }) => names.has(name));
}

function isModern(client: Client): boolean {
  return client.getProtocolEra() === 'modern';
}

function isTool(tool: unknown): tool is McpTool {
  if (!isRecord(tool) || !isRecord(tool.inputSchema) || tool.name === '') return false;
  // Not every server says that the root is an object.
  return isReadable({ ...tool, inputSchema: { type: 'object', ...tool.inputSchema } });
}
