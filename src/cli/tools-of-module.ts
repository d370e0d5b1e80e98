import type { ClassType } from '../contract/class-type.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { readRecord } from '../metadata/class-record.js';
import { loadedToolsets } from '../metadata/record-toolset.js';
import type { ToolRegistry } from '../registry/tool-registry.js';
import { UserFault } from './user-fault.js';

/** What a module lacks that has no tools. */
export const NO_TOOLS = 'no ToolRegistry, no toolset class, no tool and no NestJS module';

/** What a module brings: a registry with its tools, or what one is made of. */
export interface ModuleTools {
  readonly registry?: ToolRegistry;
  readonly toolsets: readonly ClassType[];
  readonly tools: readonly ToolDefinition[];
}

/**
 * The registry that a module exports, under however many names; or, where it exports none, the toolset classes
 * that it loaded or exports and the tools that it exports. Nothing is created.
 *
 * @throws UserFault where it exports several: each has its own policy, and merging them would lose all of them.
 */
export function toolsOfModule(module: Readonly<Record<string, unknown>>): ModuleTools | undefined {
  const exported = Object.values(module).flatMap((value) => (Array.isArray(value) ? value : [value]));
  const [registry, second] = new Set(exported.filter(isRegistry));
  if (second !== undefined) throw new UserFault('the module exports several registries: export one', 1);
  if (registry !== undefined) return { registry, toolsets: [], tools: registry.tools() };
  const toolsets = [...new Set([...loadedToolsets(), ...exported.filter(isToolset)])];
  const tools = [...new Set(exported.filter(isTool))];
  return toolsets.length + tools.length === 0 ? undefined : { toolsets, tools };
}

/** Also of another copy of this package: what is used of it is public. */
export function isRegistry(value: unknown): value is ToolRegistry {
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
