import { isUtf8 } from 'node:buffer';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server';
import type { CallRecord } from '../../contract/call-record.js';
import type { ContentPart, FilePart } from '../../contract/content-part.js';
import type { JsonSchema } from '../../contract/json-schema.js';
import type { ToolResult } from '../../contract/tool-result.js';
import { isCutDetails } from '../../invocation/cut-result.js';
import { ignoredText, resultText } from '../../registry/result-text.js';

/** What a client is told of a call's result. With a declared `output`, also as data. */
export function writeCallResult(record: CallRecord, output: JsonSchema | undefined): CallToolResult {
  const { result } = record;
  const ignored = ignoredText(record);
  const content = [...contentOf(result), ...textBlocks(ignored), ...forUser(result)];
  if (result.isError) return { content, isError: true };
  if (output === undefined || result.async) return { content };
  return { content, structuredContent: structuredOf(result, output) };
}

function contentOf(result: ToolResult): ContentBlock[] {
  const { content } = result;
  const text = resultText(result);
  if (content === undefined || content.length === 0) return [{ type: 'text', text }];
  const blocks = content.map(blockOf);
  const isWorded = content.some(({ type }) => type === 'text');
  return isWorded || text === '' ? blocks : [{ type: 'text', text }, ...blocks];
}

function textBlocks(text: string | undefined): ContentBlock[] {
  return text === undefined ? [] : [{ type: 'text', text }];
}

/** What the user is to see and the model need not, in the protocol's words (MCP, annotations). */
function forUser(result: ToolResult): ContentBlock[] {
  const { silent, forUser: text } = result;
  if (silent || !text || text === resultText(result)) return [];
  return [{ type: 'text', text, annotations: { audience: ['user'] } }];
}

function blockOf(part: ContentPart): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: part.content };
  if (part.type === 'image') return { type: 'image', data: part.data, mimeType: part.mimeType };
  if (part.mimeType.startsWith('audio/')) return { type: 'audio', data: part.data, mimeType: part.mimeType };
  return { type: 'resource', resource: resourceOf(part) };
}

const TEXTUAL = /^text\/|[/+](json|xml|yaml|javascript)\b/;

/** A file that is text is sent as text: a model can read that. */
function resourceOf({ data, mimeType, filename }: FilePart) {
  const uri = URL.canParse(filename) ? filename : `file:///${encodeURIComponent(filename)}`;
  const bytes = TEXTUAL.test(mimeType) ? Buffer.from(data, 'base64') : undefined;
  return bytes !== undefined && isUtf8(bytes)
    ? { uri, mimeType, text: bytes.toString() }
    : { uri, mimeType, blob: data };
}

/** The value that was checked against `output`: a worded result's details, or what its text says. */
function structuredOf(result: ToolResult, output: JsonSchema): unknown {
  const { text, details } = uncut(result);
  if (details !== undefined) return asJson(details);
  if (output.type === 'string' || output.const === text || output.enum?.includes(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    // `ok` is how nothing is worded.
    return text === 'ok' ? null : text;
  }
}

/** `maxResultChars` cuts what a model reads; data would be broken by it. */
function uncut({ forLLM, details }: ToolResult): { readonly text: string; readonly details: unknown } {
  return isCutDetails(details) ? { text: details.full, details: details.details } : { text: forLLM, details };
}

/** As the check of the output saw it: big integers are their digits. */
function asJson(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, field) => (typeof field === 'bigint' ? field.toString() : field)),
  );
}
