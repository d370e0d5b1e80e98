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
 * A tool as `tools/list` returns it; its schemas are the declared objects. On a protected server it also has
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
    // Clients refuse a whole list if the root schema of one tool is not an object.
    inputSchema: (parameters.type === undefined
      ? { type: 'object', ...parameters }
      : parameters) as McpTool['inputSchema'],
    outputSchema: promisedOutput(tool) as McpTool['outputSchema'],
    annotations: Object.keys(shown).length === 0 ? undefined : shown,
    icons: icons as McpTool['icons'],
    ...metadataOf(tool, isProtected),
  });
}

function metadataOf(tool: ToolDefinition, isProtected: boolean) {
  const { scopes = [], public: isPublic } = tool;
  const _meta = withAppUri(tool);
  if (!isProtected) return { _meta };
  const securitySchemes = [isPublic ? { type: 'noauth' } : { type: 'oauth2', scopes }];
  return { securitySchemes, _meta: { ..._meta, securitySchemes } };
}

/**
 * The URI of the tool's MCP App, also under the key of older hosts. It does not depend on the client's capabilities:
 * tool lists must not vary per connection (MCP, tools), and hosts without MCP Apps ignore it.
 */
function withAppUri({ _meta, ui: app }: ToolDefinition): ToolDefinition['_meta'] {
  if (app === undefined) return _meta;
  const { uri } = app;
  return { ..._meta, ui: { ...Object(_meta?.ui), resourceUri: uri }, 'ui/resourceUri': uri };
}

/** A tool's declared output. Inferred outputs are left out: clients fail a call whose result does not match. */
export function promisedOutput({ output, isOutputInferred }: ToolDefinition): JsonSchema | undefined {
  return isOutputInferred ? undefined : output;
}

/** The schema of a tool's `structuredContent`: its declared output, and for an MCP App also an inferred output. */
export function structuredOutput(tool: ToolDefinition): JsonSchema | undefined {
  return tool.ui === undefined ? promisedOutput(tool) : tool.output;
}
