import type {
  LLMRequest,
  Message,
  ResponseFormat,
  ToolChoice,
  ToolMessage,
  ToolSchema,
} from '../../../core/contract/llm-provider.js';
import { isStrictForm } from '../../../tools/schema/strict/strict-schema.js';
import { dataUrl, userParts } from '../../wire/user-parts.js';
import { jsonList, jsonRecord, jsonText, outputLimit, type WireRecord } from '../../wire/wire-json.js';
import { type DialectTarget, withDialectFields } from '../dialects.js';

/**
 * The request body for a whole reply. Tool choice and response format are converted to the API's fields. `options`
 * are added unchanged and override them, except that a token limit above that of the request is lowered. Only
 * `stream` and `stream_options` are removed, because the called method sets them.
 */
export function toChatBody(request: LLMRequest, itemKey: string): WireRecord {
  const {
    model,
    messages,
    tools = [],
    toolChoice,
    parallelToolCalls,
    responseFormat,
    options = {},
  } = request;
  const { stream, stream_options, ...rest } = options;
  const offered = [...jsonList(rest.tools), ...tools.map(toWireTool)];
  return {
    // The API refuses rules for tools, and an empty list of tools, in a request without tools.
    ...(offered.length > 0 && {
      tool_choice: toolChoice && toWireChoice(toolChoice),
      parallel_tool_calls: parallelToolCalls,
    }),
    response_format: responseFormat && toWireFormat(responseFormat),
    ...rest,
    ...outputLimit(request, ['max_completion_tokens', 'max_tokens']),
    model,
    messages: toChatMessages(messages, { model, itemKey }),
    ...(offered.length > 0 && { tools: offered }),
  };
}

/**
 * The request body for a streamed reply. It requests the usage, unless `options.stream_options` contain
 * `include_usage: false`, or are `null` or `false` for a server that does not support them.
 */
export function toChatStreamBody(
  request: LLMRequest,
  { itemKey, withUsage }: { readonly itemKey: string; readonly withUsage: boolean },
): WireRecord {
  const body = { ...toChatBody(request, itemKey), stream: true };
  const { options = {} } = request;
  const wanted = 'stream_options' in options ? options.stream_options : {};
  if (!wanted || !withUsage) return body;
  return { ...body, stream_options: { include_usage: true, ...jsonRecord(wanted) } };
}

/** Fields for other APIs are never sent. */
function toWireTool({ input, defer, isSearch, namespace, ...tool }: ToolSchema): ToolSchema {
  return tool;
}

function toWireChoice(choice: ToolChoice): unknown {
  if (typeof choice === 'string') return choice;
  if ('tool' in choice) return functionNamed(choice.tool);
  const { tools, mode = 'auto' } = choice;
  return { type: 'allowed_tools', allowed_tools: { mode, tools: tools.map(functionNamed) } };
}

function functionNamed(name: string): WireRecord {
  return { type: 'function', function: { name } };
}

function toWireFormat(format: ResponseFormat): WireRecord {
  if (format.type === 'text') return { type: 'text' };
  if (format.schema === undefined) return { type: 'json_object' };
  const { name = 'reply', schema } = format;
  // For other schemas, strict mode would change the reply.
  const strict = isStrictForm(schema) || undefined;
  return { type: 'json_schema', json_schema: { name, schema, strict } };
}

/**
 * Messages for Chat Completions: assistant messages with the fields that their server added, and tool messages as
 * text. Tool messages allow only text, so images and files of tool results follow in a user message. It comes after
 * all answers, because the API requires answers directly after the calls.
 */
function toChatMessages(
  messages: readonly Message[],
  target: DialectTarget,
): readonly (Message | WireRecord)[] {
  const wire: (Message | WireRecord)[] = [];
  let attachments: WireRecord[] = [];
  const flush = (): void => {
    if (attachments.length > 0) wire.push({ role: 'user', content: attachments });
    attachments = [];
  };
  for (const message of messages) {
    if (message.role !== 'tool') flush();
    if (message.role === 'assistant') wire.push(withDialectFields(message, target));
    else if (message.role === 'tool') {
      const { parts: _, isError: __, found: ___, kept: ____, ...answer } = message;
      wire.push(answer);
      attachments.push(...attachmentsOf(message));
    } else if (message.role === 'user')
      wire.push({ ...message, content: userParts(message.content, toUserPart) });
    else wire.push(message);
  }
  flush();
  return wire;
}

function attachmentsOf({ tool_call_id, parts = [] }: ToolMessage): readonly WireRecord[] {
  // Text is already in the answer.
  const files = parts.filter(({ type }) => type !== 'text');
  const attached = files.flatMap<WireRecord>((part) => toUserPart({ ...part }) ?? []);
  if (attached.length === 0) return [];
  return [{ type: 'text', text: `Attached to the result of ${tool_call_id}:` }, ...attached];
}

/** Parts that Chat Completions, or a compatible server, accepts unchanged. */
const WIRE_PARTS = new Set(['text', 'image_url', 'input_audio', 'video_url', 'audio_url']);

/** Converts our part to a part of Chat Completions; `undefined` if the API does not support it. */
function toUserPart(part: WireRecord): WireRecord | undefined {
  const url = dataUrl(part);
  if (url !== undefined && part.type === 'image') return { type: 'image_url', image_url: { url } };
  if (url !== undefined) return { type: 'file', file: { filename: part.filename, file_data: url } };
  return WIRE_PARTS.has(jsonText(part.type)) || (part.type === 'file' && part.file !== undefined)
    ? part
    : undefined;
}
