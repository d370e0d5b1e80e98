import type { Tool } from '../contract/tool.js';
import type { ToolSchema } from '../contract/tool-schema.js';
import { checkArguments } from '../errors/invalid-options.js';
import { isRecord } from '../kernel/is-record.js';
import type { OptionRule } from '../kernel/option-rules.js';
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
export function toolToSchema(tool: Pick<Tool, 'name' | 'description' | 'parameters'>): ToolSchema {
  if (!BARE.accepts(tool)) checkArguments({ of: 'toolToSchema', given: { tool }, rules: { tool: BARE } });
  const { name, description = '', parameters } = tool;
  return {
    type: 'function',
    function: { name, description, parameters: offeredParameters(parameters).schema },
  };
}

const BARE: OptionRule = {
  accepts: (value) => isRecord(value) && typeof value.name === 'string' && isRecord(value.parameters),
  fix: "a tool: { name, description, parameters: { type: 'object', properties: {} } }",
};
