import type { CallRecord, CallScope } from '../../core/contract/call.js';
import type { Hooks } from '../../core/contract/hooks.js';
import type { ToolCall } from '../../core/contract/llm-provider.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolRegistry } from '../call/tool-registry.js';

/** Calls a tool of the loop itself, which is not among those of the run. Such a call never waits. */
export type OwnTool = (call: ToolCall, scope: CallScope) => Promise<CallRecord>;

export function ownTool(tool: ToolDefinition, hooks: readonly Hooks[] = []): OwnTool {
  const invoke = new ToolRegistry(hooks.length === 0 ? {} : { hooks }).register(tool).invoker();
  return async ({ id, name, arguments: args }, scope) =>
    (await invoke({ id, name, arguments: args }, scope)).record;
}
