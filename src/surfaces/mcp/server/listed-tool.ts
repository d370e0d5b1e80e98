import type { Tool as McpTool } from '@modelcontextprotocol/server';
import type { ToolAnnotations } from '../../../core/contract/declaration.js';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';

const HINTS = {
  readOnly: 'readOnlyHint',
  destructive: 'destructiveHint',
  idempotent: 'idempotentHint',
  openWorld: 'openWorldHint',
} as const satisfies Partial<Record<keyof ToolAnnotations, string>>;

/** A tool as `tools/list` shows it; its schemas are the very objects that it declares. */
export function listedTool(tool: ToolDefinition): McpTool {
  const { name, description, parameters, annotations } = tool;
  const title = annotations?.title;
  const hints = annotations && hintsOf(annotations);
  const output = promisedOutput(tool);
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description ? { description } : {}),
    // One root that is not said to be an object would make clients refuse the whole list.
    inputSchema: (parameters.type === undefined
      ? { type: 'object', ...parameters }
      : parameters) as McpTool['inputSchema'],
    ...(output === undefined ? {} : { outputSchema: output as McpTool['outputSchema'] }),
    ...(hints ? { annotations: hints } : {}),
  };
}

/** The output that a tool promises. Clients fail a call that breaks it, so that one read from types is none. */
export function promisedOutput({ output, isOutputInferred }: ToolDefinition): JsonSchema | undefined {
  return isOutputInferred ? undefined : output;
}

function hintsOf(annotations: ToolAnnotations): McpTool['annotations'] {
  const { title } = annotations;
  const hints = Object.entries(HINTS).flatMap(([name, hint]) => {
    const value = annotations[name as keyof typeof HINTS];
    return value === undefined ? [] : [[hint, value] as const];
  });
  if (title === undefined && hints.length === 0) return undefined;
  return { ...(title === undefined ? {} : { title }), ...Object.fromEntries(hints) };
}
