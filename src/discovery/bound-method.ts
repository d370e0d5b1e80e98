import type { ClassType } from '../contract/class-type.js';
import type { ToolDefinition } from '../contract/tool-definition.js';

/** The method that a tool was made of. */
export interface BoundMethod {
  readonly class: ClassType;
  readonly key: string | symbol;
}

/** Beside the definitions, which are data: only a bridge that reads decorators of others asks for it. */
const methods = new WeakMap<ToolDefinition, BoundMethod>();

/** Keeps which method a tool was made of. */
export function keepBoundMethod(tool: ToolDefinition, { class: toolset, key }: BoundMethod): ToolDefinition {
  methods.set(tool, { class: toolset, key });
  return tool;
}

/** The method that `discoverTools` made a tool of; `undefined` for any other tool. */
export function boundMethodOf(tool: ToolDefinition): BoundMethod | undefined {
  return methods.get(tool);
}
