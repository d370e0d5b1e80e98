import {
  type AsyncCallback,
  type CallScope,
  type Invocation,
  type ToolDefinition,
  ToolRegistry,
  type ToolRegistryOptions,
} from 'toolwright';

/** What a call of `work` is made with. */
export interface WorkOptions extends ToolRegistryOptions {
  readonly scope?: CallScope;
  readonly attempt?: number;
  readonly onAsyncResult?: AsyncCallback;
}

/** Calls a tool under the name `work` in a registry of its own, as the loop would. */
export function callWork(
  tool: ToolDefinition,
  args: unknown = {},
  { scope = {}, attempt, onAsyncResult, ...options }: WorkOptions = {},
): Promise<Invocation> {
  const registry = new ToolRegistry(options).register(tool);
  return registry.invoke({ id: 'c1', name: 'work', arguments: args }, scope, {
    ...(attempt === undefined ? {} : { attempt }),
    ...(onAsyncResult === undefined ? {} : { onAsyncResult }),
  });
}
