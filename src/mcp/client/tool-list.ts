import { createHash } from 'node:crypto';
import type {
  Client,
  JSONRPCMessage,
  Tool as McpTool,
  StandardSchemaV1,
  Transport,
} from '@modelcontextprotocol/client';
import { isSpecType } from '@modelcontextprotocol/server';
import { createNameFilter } from '../../call/registration.js';
import type { Telemetry } from '../../contract/telemetry.js';
import { TOOL_NAME } from '../../discovery/freeze-tool.js';
import { canonicalJson, isRecord } from '../../kernel/json.js';
import { recordMessage } from '../record-message.js';
import { factsFor } from './live-client.js';
import type { McpToolCandidate, McpToolsOptions } from './options.js';

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
async function readToolList(client: Client, telemetry: Telemetry | undefined): Promise<McpTool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  if (client.transport !== undefined && isModern(client)) passOverMalformed(client.transport);
  const tools: McpTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const message = { ...factsFor(client, 'tools/list'), side: 'client' } as const;
    const { tools: found, nextCursor } = await recordMessage(telemetry, message, (carrier) => {
      const sent = carrier === undefined ? params : { ...params, _meta: { ...carrier } };
      return client.request({ method: 'tools/list', params: sent }, AS_SENT);
    });
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

const TOLERANT = new WeakSet<Transport>();

/**
 * Takes what is no tool out of the lists that a connection brings, before the SDK sees them: for one malformed
 * tool it refuses a whole page of 2026-07-28. Nothing else that arrives is touched.
 */
function passOverMalformed(transport: Transport): void {
  if (TOLERANT.has(transport)) return;
  TOLERANT.add(transport);
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => onmessage?.(withoutMalformed(message), extra);
}

function withoutMalformed<Message extends JSONRPCMessage>(message: Message): Message {
  if (!('result' in message) || !Array.isArray(message.result.tools)) return message;
  return { ...message, result: { ...message.result, tools: message.result.tools.filter(isNamedTool) } };
}

function isNamedTool(tool: unknown): tool is McpTool {
  return isReadable(tool) && tool.name !== '';
}

/** Whether the SDK takes something for a tool; what is nested too deep for its stack is not one. */
function isReadable(tool: unknown): tool is McpTool {
  try {
    return isSpecType.Tool(tool);
  } catch {
    return false;
  }
}

/** A server's tools that the options let through, under the names they get, in the server's order. */
export async function listCandidates(client: Client, options: McpToolsOptions): Promise<McpToolCandidate[]> {
  const tools = await readToolList(client, options.telemetry);
  const isWanted = createNameFilter(options);
  const candidates = tools
    .filter(({ name }) => isWanted(name))
    .map((tool) => candidateOf(tool, options.prefix));
  // A second tool of one name could never be called.
  return [...new Map(candidates.reverse().map((tool) => [tool.name, tool])).values()].reverse();
}

function candidateOf(definition: McpTool, prefix: string | undefined): McpToolCandidate {
  return { name: localName(definition.name, prefix), definition, fingerprint: fingerprintOf(definition) };
}

const MOST_CHARACTERS = 64;
const DIGEST_CHARACTERS = 8;
/** An underscore that would begin by accident what stands for a character. */
const ACCIDENT = /_(?=dot|x[0-9a-f])/g;

/**
 * The name of a server's tool as a name that every provider takes: `browser.open` → `browser_dot_open`. Each
 * leads back to one server's name only; where it would be too long, a digest keeps it apart.
 */
export function localName(name: string, prefix?: string): string {
  const marked = name.replace(ACCIDENT, '_x5f_').replace(/[^A-Za-z0-9_-]/gu, markOf);
  const whole = prefix === undefined ? withLegalStart(marked) : `${prefix}_${marked}`;
  if (TOOL_NAME.test(whole)) return whole;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS);
  return `${whole.slice(0, MOST_CHARACTERS - DIGEST_CHARACTERS - 1)}_${digest}`;
}

function withLegalStart(name: string): string {
  return /^[a-zA-Z_]/.test(name) ? name : name.replace(/^[\s\S]/u, markOf);
}

/** What stands for a character that a tool's name cannot have. */
function markOf(character: string): string {
  return character === '.' ? '_dot_' : `_x${character.codePointAt(0)?.toString(16)}_`;
}

/** A digest of all that a model is told of a tool. The order of keys says nothing. */
function fingerprintOf(tool: McpTool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const told = { name, title, description, inputSchema, outputSchema, annotations };
  return createHash('sha256').update(canonicalJson(told)).digest('hex');
}
