import { discoverTools } from '../discovery/discover-tools.js';
import { ToolRegistry } from '../registry/tool-registry.js';
import { toolsOfModule } from './tools-of-module.js';

/**
 * The registry that a module exports, or one of the toolset classes and tools that it brings.
 *
 * @throws ToolDeclarationError (502) for every mistake in what the module declares.
 */
export function registryOfModule(module: Readonly<Record<string, unknown>>): ToolRegistry | undefined {
  const found = toolsOfModule(module);
  if (found === undefined) return undefined;
  const { registry, toolsets, tools } = found;
  return registry ?? new ToolRegistry().register(...discoverTools({ toolsets }), ...tools);
}
