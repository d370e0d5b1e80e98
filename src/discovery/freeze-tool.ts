import type { ToolOptions } from '../contract/declaration.js';
import type { ToolDefinition } from '../contract/tool.js';

/** What was derived for a tool; wins over the author's options of the same name, which it was derived from. */
type ToolParts = Pick<
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
  | 'reconcile'
  | 'compensate'
  | 'touches'
  | 'preview'
  | 'execute'
>;

/** A finished definition: the author's options and what was derived, frozen, without empty fields. */
export function freezeTool(
  options: Omit<ToolOptions, 'reconcile' | 'compensate' | 'touches' | 'preview'>,
  parts: ToolParts,
): ToolDefinition {
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

/** What every provider accepts as a tool's name. */
export const TOOL_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;

/** A method's name as a tool's name: `findOrders` → `find_orders`, `getHTTPStatus` → `get_http_status`. */
export function toSnakeCase(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s$-]+/g, '_').toLowerCase();
}

/** The fault of a name that {@link TOOL_NAME} does not match. */
export function illegalName(name: string): { readonly problem: string; readonly fix: string } {
  return {
    problem: `the tool name ${JSON.stringify(name)} is not accepted by every provider (${TOOL_NAME.source})`,
    fix: 'a `name` of letters, digits, _ and -, at most 64, not starting with a digit or -',
  };
}

/**
 * Whether a function certainly takes its arguments and no context, told by its source: then none needs to be made
 * for it. Where the source leaves a doubt, it takes one.
 */
export function ignoresContext(execute: (...args: never) => unknown): boolean {
  if (execute.length > 1) return false;
  const source = Function.prototype.toString.call(execute);
  if (/\barguments\b|\beval\b|\.\.\.|\[native code\]/.test(source)) return false;
  return /^(?:async\s+)?[\w$]+\s*=>/.test(source) || hasOneParameter(source);
}

const OPENING = '([{';
const CLOSING = ')]}';

/** A default value may be anything; one that could hide a bracket or a comma is a doubt. */
function hasOneParameter(source: string): boolean {
  let depth = 0;
  for (let index = 0; index < source.length; index += 1) {
    const character = source.charAt(index);
    if (`'"\`/`.includes(character)) return false;
    if (OPENING.includes(character)) depth += 1;
    else if (CLOSING.includes(character)) depth -= 1;
    else if (character === ',' && depth === 1) return false;
    if (depth === 0 && character === ')') return true;
  }
  return false;
}
