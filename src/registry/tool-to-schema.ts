import type { Tool } from '../contract/tool.js';
import type { ToolSchema } from '../contract/tool-schema.js';

/**
 * A tool as a model is offered it; `parameters` are passed through unchanged.
 *
 * @example
 * ```ts
 * toolToSchema(readFile);
 * // { type: 'function', function: { name: 'read_file', description: '…', parameters: { … } } }
 * ```
 */
export function toolToSchema({
  name,
  description = '',
  parameters,
}: Pick<Tool, 'name' | 'description' | 'parameters'>): ToolSchema {
  return { type: 'function', function: { name, description, parameters } };
}
