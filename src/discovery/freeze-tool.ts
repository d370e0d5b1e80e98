import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolOptions } from '../contract/tool-options.js';

/** What was derived for a tool; wins over the author's options of the same name, which it was derived from. */
export type ToolParts = Pick<
  ToolDefinition,
  | 'name'
  | 'toolset'
  | 'parameters'
  | 'output'
  | 'isOutputInferred'
  | 'hydrate'
  | 'observesSignal'
  | 'ignoresContext'
  | 'container'
  | 'execute'
>;

/** A finished definition: the author's options and what was derived, frozen, without empty fields. */
export function freezeTool(options: ToolOptions, parts: ToolParts): ToolDefinition {
  const all: Readonly<Record<string, unknown>> = {
    ...options,
    description: options.description ?? '',
    ...parts,
  };
  const present: Record<string, unknown> = {};
  for (const name of Object.keys(all)) if (all[name] !== undefined) present[name] = all[name];
  const tool = Object.freeze(present) as unknown as ToolDefinition;
  finished.add(tool);
  return tool;
}

/** Definitions of which everything was checked when they were made. */
const finished = new WeakSet<object>();

/** Whether {@link freezeTool} made this very definition, so that nothing of it need be checked again. */
export function isFinishedTool(tool: unknown): tool is ToolDefinition {
  return typeof tool === 'object' && tool !== null && finished.has(tool);
}
