import {
  type InputRequiredResult,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
} from '@modelcontextprotocol/server';
import type { McpApp } from '../../../core/contract/declaration.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import { readApp } from './apps.js';
import { contentBlocks, isContent } from './call-result.js';
import { descriptionOf, returnedValue } from './prompts.js';
import { listedPart, type McpRequest, prepare, visibleTools } from './request.js';
import { findResource, servedAs } from './resource-uris.js';
import { serveCall } from './serve-call.js';

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
