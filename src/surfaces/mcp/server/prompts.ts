import {
  type ContentBlock,
  type GetPromptResult,
  type InputRequiredResult,
  type Prompt,
  type PromptMessage,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import { contentBlocks } from './call-result.js';
import type { McpRequest } from './request.js';
import { type Served, serveCall } from './serve-call.js';

/** A prompt as `prompts/list` returns it; its arguments are strings. */
export function listedPrompt(prompt: ToolDefinition): Prompt {
  const { properties = {}, required = [] } = prompt.parameters;
  return withoutUndefined<Prompt>({
    ...descriptionOf(prompt),
    arguments: Object.entries(properties).map(([argument, schema]) => ({
      name: argument,
      ...(isRecord(schema) && typeof schema.description === 'string' && { description: schema.description }),
      required: required.includes(argument),
    })),
  });
}

/** The fields that prompts and resources share in lists. */
export function descriptionOf({ name, description, annotations, icons, _meta }: ToolDefinition) {
  return {
    name,
    title: annotations?.title,
    description: description || undefined,
    icons: icons as Prompt['icons'],
    _meta: _meta as Prompt['_meta'],
  };
}

/** Handles `prompts/get`. */
export async function getPrompt(
  request: McpRequest,
  {
    name,
    arguments: args = {},
  }: { readonly name: string; readonly arguments?: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<GetPromptResult | InputRequiredResult> {
  const served = await serveCall(request, { method: 'prompts/get', name, arguments: args }, signal);
  if (served.type === 'interim') return served.result;
  const value = returnedValue(served);
  const given = isRecord(value) && Array.isArray(value.messages) ? value : undefined;
  const description = given === undefined ? undefined : given.description;
  return {
    ...(typeof description === 'string' && { description }),
    messages: given === undefined ? userMessages(value) : (given.messages as unknown[]).flatMap(messagesOf),
  };
}

/**
 * The return value of a prompt, resource or completion.
 *
 * @throws ProtocolError for invalid arguments and for failures.
 */
export function returnedValue(served: Exclude<Served, { readonly type: 'interim' }>): unknown {
  if (served.type === 'refused') throw new ProtocolError(ProtocolErrorCode.InternalError, served.text);
  const { status, result } = served.record;
  const code = status === 'rejected' ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  if (result.isError) throw new ProtocolError(code, result.forLLM);
  return result.details;
}

function userMessages(value: unknown): PromptMessage[] {
  return contentBlocks(value).map((content) => ({ role: 'user', content }));
}

function messagesOf(message: unknown): PromptMessage[] {
  if (!isRecord(message) || message.role === undefined) return userMessages(message);
  const { role, content } = message;
  const blocks = isRecord(content) && isBlock(content) ? [content] : contentBlocks(content);
  return blocks.map((block) => ({ role: role as PromptMessage['role'], content: block }));
}

/** Whether a block is in MCP's form; content parts of this package have their text in `content`. */
function isBlock(
  content: Readonly<Record<string, unknown>>,
): content is ContentBlock & Record<string, unknown> {
  return typeof content.type === 'string' && !('content' in content);
}
