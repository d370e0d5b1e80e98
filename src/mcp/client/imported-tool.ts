import { createHash } from 'node:crypto';
import type {
  CallToolResult,
  Client,
  ContentBlock,
  JSONRPCMessage,
  Tool as McpTool,
  Transport,
} from '@modelcontextprotocol/client';
import { isSpecType } from '@modelcontextprotocol/server';
import { CallContext } from '../../call/context.js';
import { createNameFilter } from '../../call/registration.js';
import { textOf } from '../../call/result-form.js';
import { describeSchemaFault, readForeignSchema, rejectedDefaults } from '../../checking/given-schema.js';
import type { ToolAnnotations } from '../../contract/declaration.js';
import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import type { McpFacts, Telemetry, TraceCarrier } from '../../contract/telemetry.js';
import type { ToolDefinition } from '../../contract/tool.js';
import type { ToolContext } from '../../contract/tool-context.js';
import { type ContentPart, ToolResult } from '../../contract/tool-result.js';
import { TOOL_NAME } from '../../discovery/define-tool.js';
import { warnAuthor } from '../../errors/author-fault.js';
import { MAX_TIMER_MS } from '../../kernel/async.js';
import { canonicalJson, isRecord } from '../../kernel/json.js';
import { asSent, recordMessage } from '../record-message.js';
import type { LiveClient } from './live-client.js';
import type { McpToolCandidate, McpToolsOptions } from './options.js';

/** A page as the server sent it. The SDK's own reader puts the keys of a schema into another order. */
interface RawPage {
  readonly tools?: unknown;
  readonly nextCursor?: unknown;
}

const AS_SENT = asSent<RawPage>();

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
  const tools = message.result.tools.filter((tool) => isReadable(tool) && tool.name !== '');
  return { ...message, result: { ...message.result, tools } };
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
    .map((definition) => ({
      name: localName(definition.name, options.prefix),
      definition,
      fingerprint: fingerprintOf(definition),
    }));
  // A second tool of one name could never be called.
  return [...new Map(candidates.reverse().map((tool) => [tool.name, tool])).values()].reverse();
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
  const legal = /^[a-zA-Z_]/.test(marked) ? marked : marked.replace(/^[\s\S]/u, markOf);
  const whole = prefix === undefined ? legal : `${prefix}_${marked}`;
  if (TOOL_NAME.test(whole)) return whole;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS);
  return `${whole.slice(0, MOST_CHARACTERS - DIGEST_CHARACTERS - 1)}_${digest}`;
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

/** As in the loop: a server that died in the middle of a call may never say so. */
const TIMEOUT_MS = 120_000;

interface ImportedFrom {
  readonly client: LiveClient;
  readonly options: McpToolsOptions;
}

/**
 * A server's tool as a tool of a registry; its schemas are the very objects that the server sent. Nothing where
 * they are malformed or out of all bounds, which is told.
 */
export function importTool(
  { name, definition: tool }: McpToolCandidate,
  { client, options }: ImportedFrom,
): ToolDefinition | undefined {
  const schemas = readForeignSchemas(tool, options);
  if (schemas === undefined) return undefined;
  const { timeoutMs = TIMEOUT_MS, fillDefaults = false } = options;
  const annotations = annotationsOf(tool);
  const isRepeatable = annotations.readOnly === true || annotations.idempotent === true;
  // The registry checks the arguments and the result: what is left here is which parameters have headers.
  const { outputSchema, ...toolDefinition } = tool;
  return Object.freeze({
    name,
    description: tool.description ?? '',
    parameters: tool.inputSchema as JsonSchema,
    ...(outputSchema === undefined ? {} : { output: outputSchema as JsonSchema }),
    ...(timeoutMs === Number.POSITIVE_INFINITY ? {} : { timeoutMs }),
    annotations,
    ...(fillDefaults ? {} : { fillsDefaults: false }),
    ...(schemas.areWhole ? {} : { checkedAs: schemas.checkedAs }),
    async execute(args: JsonObject, context: ToolContext) {
      const send = (connected: Client, carrier: TraceCarrier | undefined) =>
        connected.callTool(
          { name: tool.name, arguments: args, ...(carrier ? { _meta: { ...carrier } } : {}) },
          {
            toolDefinition,
            signal: context.signal,
            // The registry's own limit counts, and it aborts the signal.
            timeout: MAX_TIMER_MS,
            onprogress: (progress) => context.progress(progress),
          },
        );
      const trace = context instanceof CallContext ? context.trace : undefined;
      const result = await client.use((connected) => {
        const facts = factsFor(connected, 'tools/call');
        trace?.onMcp(facts);
        // The call is recorded once: by who makes it, or else here.
        if (trace !== undefined) return send(connected, trace.carrier);
        const message = { ...facts, side: 'client', tool: tool.name } as const;
        return recordMessage(options.telemetry, message, (carrier) => send(connected, carrier));
      }, isRepeatable);
      return readMcpResult(result);
    },
  });
}

/** What a server does not say counts as the worse (MCP, tool annotations). */
function annotationsOf({ title, annotations = {} }: McpTool): ToolAnnotations {
  const shown = title ?? annotations.title;
  const readOnly = annotations.readOnlyHint ?? false;
  return {
    ...(shown === undefined ? {} : { title: shown }),
    readOnly,
    destructive: annotations.destructiveHint ?? !readOnly,
    idempotent: annotations.idempotentHint ?? false,
    openWorld: annotations.openWorldHint ?? true,
  };
}

/** What of a server's schemas is checked here. */
interface ForeignSchemas {
  readonly checkedAs: NonNullable<ToolDefinition['checkedAs']>;
  /** All of them is. */
  readonly areWhole: boolean;
}

/** Reads the schemas of a server's tool, and tells of what is left out; nothing where the whole tool has to be. */
function readForeignSchemas(
  { name, inputSchema, outputSchema }: McpTool,
  { logger, fillDefaults = false }: McpToolsOptions,
): ForeignSchemas | undefined {
  const where = `MCP tool ${JSON.stringify(name)}`;
  const input = readForeignSchema(inputSchema);
  const output = outputSchema === undefined ? undefined : readForeignSchema(outputSchema);
  for (const [what, read] of Object.entries({ inputSchema: input, outputSchema: output })) {
    if (read === undefined) continue;
    if (!read.ok) {
      const fix = 'a tool that its server has mended, or `deny` for it';
      warnAuthor({ where, problem: `it is left out: its ${what} ${read.problem}`, fix }, logger);
      return undefined;
    }
    for (const pattern of read.left) {
      const problem = `its ${what} has a pattern that a text can make run for ever: ${JSON.stringify(pattern.slice(0, 200))}`;
      warnAuthor({ where, problem, fix: 'nothing: only the server checks it' }, logger);
    }
  }
  if (!input.ok || output?.ok === false) return undefined;
  if (fillDefaults)
    for (const fault of rejectedDefaults(input.checked))
      warnAuthor({ where, ...describeSchemaFault(fault, 'inputSchema') }, logger);
  return {
    checkedAs: { parameters: input.checked, ...(output === undefined ? {} : { output: output.checked }) },
    areWhole: input.left.length === 0 && (output?.left.length ?? 0) === 0,
  };
}

/**
 * What a server answered, as the result of its tool. Text in resources is text for the model;
 * `structuredContent` is in `details`. Blocks whose only audience is the user are `forUser`.
 */
function readMcpResult({ content, structuredContent, isError = false }: CallToolResult): ToolResult {
  const [shown, read] = [content.filter(isForUser), content.filter((block) => !isForUser(block))];
  const parts = read.map(partOf);
  const isPlain = parts.every(({ type }) => type === 'text');
  const text = textOf(parts);
  const words = text === '' && structuredContent !== undefined ? JSON.stringify(structuredContent) : text;
  return new ToolResult({
    forLLM: words === '' && isPlain && shown.length > 0 ? ALL_FOR_USER : words,
    isError,
    ...(shown.length > 0 ? { forUser: shown.map(partOf).map(userText).join('\n') } : {}),
    ...(isPlain ? {} : { content: parts }),
    ...(structuredContent === undefined ? {} : { details: structuredContent }),
  });
}

/** A model that reads nothing takes the call for one that failed. */
const ALL_FOR_USER = 'Done. The result is for the user.';

function isForUser({ annotations }: ContentBlock): boolean {
  const { audience } = annotations ?? {};
  return audience !== undefined && audience.length > 0 && audience.every((reader) => reader === 'user');
}

function userText(part: ContentPart): string {
  if (part.type === 'text') return part.content;
  return part.type === 'image' ? `[${part.mimeType}]` : `[${part.mimeType}: ${part.filename}]`;
}

function partOf(block: ContentBlock): ContentPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', content: block.text };
    case 'image':
      return { type: 'image', data: block.data, mimeType: block.mimeType };
    case 'audio':
      return { type: 'file', data: block.data, mimeType: block.mimeType, filename: 'audio' };
    case 'resource_link':
      return {
        type: 'text',
        content: [block.uri, block.title ?? block.name, block.description].filter(Boolean).join('\n'),
      };
    case 'resource':
      return resourceOf(block.resource);
  }
}

function resourceOf(resource: Extract<ContentBlock, { type: 'resource' }>['resource']): ContentPart {
  const { uri, mimeType = 'application/octet-stream' } = resource;
  if ('text' in resource) return { type: 'text', content: `${uri}\n${resource.text}` };
  return { type: 'file', data: resource.blob, mimeType, filename: uri };
}

/** What is recorded of a message to the server of a connection. */
function factsFor(client: Client, method: string): McpFacts {
  const { transport } = client;
  return {
    method,
    protocolVersion: client.getNegotiatedProtocolVersion?.(),
    sessionId: transport?.sessionId,
    transport: transportOf(transport?.constructor.name),
  };
}

/** The SDK tells its transports apart by their classes alone. */
function transportOf(name: string | undefined): McpFacts['transport'] {
  if (name === undefined) return undefined;
  if (/stdio/i.test(name)) return 'pipe';
  return /http|sse|websocket/i.test(name) ? 'tcp' : undefined;
}
