import {
  type CompleteRequestParams,
  type CompleteResult,
  type ContentBlock,
  type GetPromptResult,
  type InputRequiredResult,
  type Prompt,
  type PromptMessage,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
} from '@modelcontextprotocol/server';
import type { McpApp } from '../../../core/contract/declaration.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { type Fields, isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import { readApp } from './apps.js';
import { contentBlocks, isContent } from './call-result.js';
import { listedPart, type McpRequest, prepare, visibleTools } from './request.js';
import { findResource, servedAs, servedCompletion } from './resource-uris.js';
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
function descriptionOf({ name, description, annotations, icons, _meta }: ToolDefinition) {
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
function returnedValue(served: Exclude<Served, { readonly type: 'interim' }>): unknown {
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
function isBlock(content: Fields): content is ContentBlock & Record<string, unknown> {
  return typeof content.type === 'string' && !('content' in content);
}

/** A resource as `resources/list` returns it. */
export function listedResource(resource: ToolDefinition): Resource {
  return { uri: servedAs(resource).uri, ...listed(resource) };
}

/** A resource as `resources/templates/list` returns it. */
export function listedTemplate(resource: ToolDefinition): ResourceTemplateType {
  return { uriTemplate: servedAs(resource).uri, ...listed(resource) };
}

function listed(resource: ToolDefinition) {
  const { mimeType, audience, priority } = servedAs(resource);
  const annotations = withoutUndefined({ audience: audience && [...audience], priority });
  return withoutUndefined<Omit<Resource, 'uri'>>({
    ...descriptionOf(resource),
    mimeType,
    annotations: Object.keys(annotations).length === 0 ? undefined : annotations,
  });
}

/** Handles `resources/read`. */
export async function readResource(
  request: McpRequest,
  { uri }: { readonly uri: string },
  signal: AbortSignal,
): Promise<ReadResourceResult | InputRequiredResult> {
  const app = await findApp(request, uri);
  if (app !== undefined) return prepare(request, () => readApp(app));
  const found = findResource(request.served.registry.part('resource'), uri);
  if (found === undefined) throw new ResourceNotFoundError(uri);
  const { resource, variables } = found;
  const wanted = { method: 'resources/read', name: resource.name, arguments: variables } as const;
  const served = await serveCall(request, wanted, signal);
  if (served.type === 'interim') return served.result;
  const value = returnedValue(served);
  if (value === undefined || value === null) throw new ResourceNotFoundError(uri);
  const { mimeType, ttlMs, cacheScope } = servedAs(resource);
  return {
    contents: contentsOf(value, { uri, mimeType }),
    ...(ttlMs !== undefined && { ttlMs, cacheScope: cacheScope ?? 'private' }),
  };
}

/** The MCP App of a URI, if the caller's list contains one of its tools. */
async function findApp(request: McpRequest, uri: string): Promise<McpApp | undefined> {
  const { lists } = request.served;
  if (!lists.apps().has(uri)) return undefined;
  const visible = await prepare(request, () => visibleTools(request));
  return lists.apps(listedPart(request, visible)).get(uri);
}

type Contents = ReadResourceResult['contents'];

function contentsOf(
  value: unknown,
  of: { readonly uri: string; readonly mimeType: string | undefined },
): Contents {
  const { uri, mimeType } = of;
  if (typeof value === 'string') return [{ uri, mimeType: mimeType ?? 'text/plain', text: value }];
  if (value instanceof Uint8Array)
    return [
      { uri, mimeType: mimeType ?? 'application/octet-stream', blob: Buffer.from(value).toString('base64') },
    ];
  if (isRecord(value) && Array.isArray(value.contents)) return value.contents as Contents;
  if (!isContent(value))
    return [{ uri, mimeType: mimeType ?? 'application/json', text: JSON.stringify(value) }];
  return contentBlocks(value).flatMap((block): Contents => {
    if (block.type === 'text') return [{ uri, mimeType: mimeType ?? 'text/plain', text: block.text }];
    if (block.type === 'resource') return [{ ...block.resource, uri }];
    return 'data' in block ? [{ uri, mimeType: block.mimeType, blob: block.data }] : [];
  });
}

/** The most suggestions in a response (MCP, completion). */
const MAX_VALUES = 100;

/** Handles `completion/complete`; without a completion method there are no suggestions. */
export async function completeArgument(
  request: McpRequest,
  { ref, argument, context }: CompleteRequestParams,
  signal: AbortSignal,
): Promise<CompleteResult> {
  const of = ref.type === 'ref/prompt' ? ref.name : ref.uri;
  const completions = request.served.registry.part('completion').tools();
  const completion = completions.find((one) => {
    const completes = servedCompletion(one);
    return completes.of === of && completes.argument === argument.name;
  });
  if (completion === undefined) return { completion: { values: [] } };
  const wanted = {
    method: 'completion/complete',
    name: completion.name,
    arguments: { ...context?.arguments, value: argument.value },
  } as const;
  const served = await serveCall(request, wanted, signal);
  const value = served.type === 'interim' ? [] : returnedValue(served);
  const all = Array.isArray(value) ? value.map(String) : [];
  const values = all.slice(0, MAX_VALUES);
  return { completion: { values, total: all.length, hasMore: all.length > values.length } };
}
