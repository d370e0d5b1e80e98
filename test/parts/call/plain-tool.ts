import type { ToolContext, ToolDefinition } from 'toolwright';

/** A tool called `work` that accepts any arguments; `more` overrides its properties. */
export function plainTool(
  execute: (args: Record<string, unknown>, context: ToolContext) => unknown,
  more: Partial<ToolDefinition> = {},
): ToolDefinition {
  return { name: 'work', description: 'Works', parameters: { type: 'object' }, execute, ...more };
}
