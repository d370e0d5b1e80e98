import type { ClassType } from '../../core/contract/declaration.js';
import type { ToolDefinition } from '../../core/contract/tool.js';

/** The method of a tool. */
interface BoundMethod {
  readonly class: ClassType;
  readonly key: string | symbol;
}

/** Kept outside the definitions, which are data. */
const methods = new WeakMap<ToolDefinition, BoundMethod>();

/** Records the method that became a tool. */
export function bindMethod(tool: ToolDefinition, method: BoundMethod): void {
  methods.set(tool, method);
}

/** The method that `discoverTools` turned into a tool; `undefined` for other tools. */
export function boundMethodOf(tool: ToolDefinition): BoundMethod | undefined {
  return methods.get(tool);
}

/** A method for people: `ShopTools.find`. */
export function methodPlace(method: BoundMethod): string {
  return `${method.class.name}.${String(method.key)}`;
}

/** A tool for people: its method, or its name. */
export function toolPlace(tool: ToolDefinition): string {
  const bound = boundMethodOf(tool);
  return bound === undefined ? tool.name : methodPlace(bound);
}
