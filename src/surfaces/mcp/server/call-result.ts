import { isUtf8 } from 'node:buffer';
import type { CallToolResult, ContentBlock, Tool as McpTool, Server } from '@modelcontextprotocol/server';
import type { CallRecord } from '../../../core/contract/call.js';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { type ContentPart, ToolResult } from '../../../core/contract/tool-result.js';
import { withoutUndefined } from '../../../core/kernel/json.js';
import { isPart } from '../../../run/call/result-form.js';
import { isCutDetails, notesOf, resultText } from '../../../run/call/result-text.js';

const HINTS = [
  ['readOnlyHint', 'readOnly'],
  ['destructiveHint', 'destructive'],
  ['idempotentHint', 'idempotent'],
  ['openWorldHint', 'openWorld'],
] as const;

/**
 * A tool as `tools/list` returns it; its schemas are the declared objects. On a protected server it also has
 * `securitySchemes`, which ChatGPT reads. The URI of its MCP App, also under the key of older hosts, does not depend on
 * the client's capabilities: tool lists must not vary per connection (MCP, tools), and other hosts ignore it.
 */
export function listedTool(tool: ToolDefinition, isProtected: boolean): McpTool {
  const { name, description, parameters, annotations = {}, icons, scopes = [], _meta, ui } = tool;
  const { title } = annotations;
  const hints = HINTS.map(([hint, key]) => [hint, annotations[key]] as const);
  const shown = withoutUndefined({ title, ...Object.fromEntries(hints) });
  const app = ui && { ui: { ...Object(_meta?.ui), resourceUri: ui.uri }, 'ui/resourceUri': ui.uri };
  const scheme = tool.public ? { type: 'noauth' } : { type: 'oauth2', scopes };
  const security = isProtected ? { securitySchemes: [scheme] } : undefined;
  return withoutUndefined<McpTool>({
    name,
    title,
    description: description || undefined,
    // Clients refuse a whole list if the root schema of one tool is not an object.
    inputSchema: (parameters.type === undefined
      ? { type: 'object', ...parameters }
      : parameters) as McpTool['inputSchema'],
    outputSchema: promisedOutput(tool) as McpTool['outputSchema'],
    annotations: Object.keys(shown).length === 0 ? undefined : shown,
    icons: icons as McpTool['icons'],
    ...security,
    _meta: (_meta ?? app ?? security) && { ..._meta, ...app, ...security },
  });
}

/** A tool's declared output. Inferred outputs are left out: clients fail a call whose result does not match. */
function promisedOutput({ output, isOutputInferred }: ToolDefinition): JsonSchema | undefined {
  return isOutputInferred ? undefined : output;
}

/** The schema of a tool's `structuredContent`: its declared output, and for an MCP App also an inferred output. */
export function structuredOutput(tool: ToolDefinition): JsonSchema | undefined {
  return tool.ui === undefined ? promisedOutput(tool) : tool.output;
}

/** The result of a call in the form of the client's protocol version. */
export function sentResult(
  server: Server,
  record: CallRecord,
  tool: ToolDefinition | undefined,
): CallToolResult {
  const result = writeCallResult(record, tool && structuredOutput(tool));
  return server.projectCallToolResult(result, tool && promisedOutput(tool));
}

/** The result of a call for the client; with an `output`, also as structured data, which always has a text, too. */
export function writeCallResult(record: CallRecord, output: JsonSchema | undefined): CallToolResult {
  const { result } = record;
  const content = contentOf(result);
  for (const text of notesOf(record)) content.push({ type: 'text', text });
  const { silent, forUser } = result;
  // Text for the user that the model does not need (MCP, annotations).
  if (!silent && forUser && forUser !== resultText(result))
    content.push({ type: 'text', text: forUser, annotations: { audience: ['user'] } });
  if (result.isError) return { content, isError: true };
  if (output === undefined || result.async) return { content };
  const structuredContent = structuredOf(result, output);
  const hasText = content.some((block) => block.type === 'text' && block.text.trim() !== '');
  if (!hasText) content.push({ type: 'text', text: JSON.stringify(structuredContent) });
  return { content, structuredContent };
}

function contentOf(result: ToolResult): ContentBlock[] {
  const { content } = result;
  const text = resultText(result);
  if (content === undefined || content.length === 0) return [{ type: 'text', text }];
  const blocks = content.map(blockOf);
  const hasText = content.some(({ type }) => type === 'text');
  return hasText || text === '' ? blocks : [{ type: 'text', text }, ...blocks];
}

/** Whether a value is content for a model instead of data: a result, content parts, or an object with only these. */
export function isContent(value: unknown): value is ToolResult | readonly ContentPart[] {
  if (value instanceof ToolResult) return true;
  return Array.isArray(value) && value.length > 0 && value.every(isPart);
}

/** The MCP blocks for the return value of a prompt or a resource. */
export function contentBlocks(value: unknown): ContentBlock[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  if (value instanceof ToolResult) return contentOf(value);
  if (isContent(value)) return (value as readonly ContentPart[]).map(blockOf);
  return isPart(value) ? [blockOf(value)] : [{ type: 'text', text: JSON.stringify(value) }];
}

function blockOf(part: ContentPart): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: part.content };
  const { data, mimeType } = part;
  if (part.type === 'image') return { type: 'image', data, mimeType };
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType };
  const { filename } = part;
  const uri = URL.canParse(filename) ? filename : `file:///${encodeURIComponent(filename)}`;
  // Models can read a text file only if it is sent as text.
  const bytes = TEXTUAL.test(mimeType) ? Buffer.from(data, 'base64') : undefined;
  const content = bytes !== undefined && isUtf8(bytes) ? { text: bytes.toString() } : { blob: data };
  return { type: 'resource', resource: { uri, mimeType, ...content } };
}

const TEXTUAL = /^text\/|[/+](json|xml|yaml|javascript)\b/;

/** The value that was checked against `output`: the details of a result, or its text parsed. */
function structuredOf(result: ToolResult, output: JsonSchema): unknown {
  const { details: given } = result;
  // `maxResultChars` cuts text for the model; cut data would be invalid.
  const [text, details] = isCutDetails(given) ? [given.full, given.details] : [result.forLLM, given];
  // In the form that was checked against `output`, in which big integers are strings of digits.
  const digits = (_key: string, field: unknown) => (typeof field === 'bigint' ? field.toString() : field);
  if (details !== undefined) return JSON.parse(JSON.stringify(details, digits));
  if (output.type === 'string' || output.const === text || output.enum?.includes(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    // `ok` is the text of a tool that returned nothing.
    return text === 'ok' ? null : text;
  }
}
