import type { ClassType } from '../contract/class-type.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { discoverTools } from '../discovery/discover-tools.js';
import { readRecord } from '../metadata/class-record.js';
import { loadedToolsets } from '../metadata/record-toolset.js';
import { ToolRegistry } from '../registry/tool-registry.js';
import { UserFault } from './user-fault.js';

/**
 * The registry that a module exports, under however many names. One that exports none gets a registry of the
 * toolset classes that it loaded or exports, and of the tools that it exports.
 *
 * @throws ToolDeclarationError (502) for every mistake in what the module declares.
 * @throws UserFault where it exports several: each has its own policy, and merging them would lose all of them.
 */
export function registryOfModule(module: Readonly<Record<string, unknown>>): ToolRegistry | undefined {
  const exported = Object.values(module).flatMap((value) => (Array.isArray(value) ? value : [value]));
  const [only, second] = new Set(exported.filter(isRegistry));
  if (second !== undefined) throw new UserFault('the module exports several registries: export one', 1);
  if (only !== undefined) return only;
  const toolsets = [...new Set([...loadedToolsets(), ...exported.filter(isToolset)])];
  const tools = exported.filter(isTool);
  if (toolsets.length + tools.length === 0) return undefined;
  return new ToolRegistry().register(...discoverTools({ toolsets }), ...tools);
}

/** Also of another copy of this package: what is used of it is public. */
function isRegistry(value: unknown): value is ToolRegistry {
  return hasMethods(value, ['invoke', 'tools', 'view', 'onChange']);
}

function isTool(value: unknown): value is ToolDefinition {
  return hasMethods(value, ['execute']) && 'parameters' in (value as object);
}

function isToolset(value: unknown): value is ClassType {
  return typeof value === 'function' && (readRecord(value)?.methods.size ?? 0) > 0;
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function');
}
