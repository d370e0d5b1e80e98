import type { Tool as McpTool } from '@modelcontextprotocol/client';
import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import type { ToolContext } from '../../contract/tool-context.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import type { ToolAnnotations } from '../../contract/tool-options.js';
import { MAX_TIMER_MS } from '../../invocation/max-timer-ms.js';
import type { LiveClient } from './live-client.js';
import type { McpToolCandidate, McpToolsOptions } from './mcp-tools-options.js';
import { readForeignSchemas } from './read-foreign-schemas.js';
import { readMcpResult } from './read-mcp-result.js';

/** As in the loop: a server that died in the middle of a call may never say so. */
const TIMEOUT_MS = 120_000;

/** What all tools of one server share. */
export interface ImportedFrom {
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
  const schemas = readForeignSchemas(tool, options.logger);
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
      const result = await client.use(
        (connected) =>
          connected.callTool(
            { name: tool.name, arguments: args },
            {
              toolDefinition,
              signal: context.signal,
              // The registry's own limit counts, and it aborts the signal.
              timeout: MAX_TIMER_MS,
              onprogress: (progress) => context.progress(progress),
            },
          ),
        isRepeatable,
      );
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
