import type { ToolDefinition } from '../contract/tool-definition.js';

/** Why a call may not run here; `undefined` where it may. */
export function refusalOf(tool: ToolDefinition): string | undefined {
  if (tool.execution === 'client')
    return `The tool '${tool.name}' is executed by the client; it cannot run here.`;
  // A function decides per call. Where there is nobody to ask, a tool that may need a yes does not run.
  if (tool.approval)
    return `The tool '${tool.name}' needs an approval, and nobody can give it here; it was not run.`;
  return undefined;
}
