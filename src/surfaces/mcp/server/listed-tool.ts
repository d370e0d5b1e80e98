import type { Tool as McpTool } from '@modelcontextprotocol/server';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { withoutUndefined } from '../../../core/kernel/json.js';

const HINTS = [
  ['readOnlyHint', 'readOnly'],
  ['destructiveHint', 'destructive'],
  ['idempotentHint', 'idempotent'],
  ['openWorldHint', 'openWorld'],
] as const;

/**
 * A tool as `tools/list` shows it; its schemas are the very objects that it declares. On a protected server it also has
 * `securitySchemes`, which ChatGPT reads.
 */
export function listedTool(tool: ToolDefinition, isProtected: boolean): McpTool {
  const { name, description, parameters, annotations = {}, icons } = tool;
  const { title } = annotations;
  const hints = HINTS.map(([hint, key]) => [hint, annotations[key]] as const);
  const shown = withoutUndefined({ title, ...Object.fromEntries(hints) });
  return withoutUndefined<McpTool>({
    name,
    title,
    description: description || undefined,
    // One root that is not said to be an object would make clients refuse the whole list.
    inputSchema: (parameters.type === undefined
      ? { type: 'object', ...parameters }
      : parameters) as McpTool['inputSchema'],
    outputSchema: promisedOutput(tool) as McpTool['outputSchema'],
    annotations: Object.keys(shown).length === 0 ? undefined : shown,
    icons: icons as McpTool['icons'],
    ...metadataOf(tool, isProtected),
  });
}

function metadataOf({ _meta, scopes = [], public: isPublic }: ToolDefinition, isProtected: boolean) {
  if (!isProtected) return { _meta };
  const securitySchemes = [isPublic ? { type: 'noauth' } : { type: 'oauth2', scopes }];
  return { securitySchemes, _meta: { ..._meta, securitySchemes } };
}

/** The output that a tool promises. Clients fail a call that breaks it, so that one read from types is none. */
export function promisedOutput({ output, isOutputInferred }: ToolDefinition): JsonSchema | undefined {
  return isOutputInferred ? undefined : output;
}
