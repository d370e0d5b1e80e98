import type { Tool } from '../contract/tool.js';
import type { ToolSchema } from '../contract/tool-schema.js';
import { offeredParameters } from '../schema/offered-parameters.js';

/**
 * A tool as a model is offered it; `parameters` are passed through unchanged, unless their root is a union or
 * the like, which providers refuse: then they stand in a property `input`, and calls are taken in both forms.
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
  return {
    type: 'function',
    function: { name, description, parameters: offeredParameters(parameters).schema },
  };
}
