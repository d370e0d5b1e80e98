import type { ToolDefinition } from '../contract/tool-definition.js';
import { defineTool } from '../discovery/define-tool.js';
import { CALCULATE_DESCRIPTION, EXPRESSION_DESCRIPTION } from './descriptions.js';
import { evaluateExpression } from './evaluate-expression.js';
import { formatNumber } from './format-number.js';

/**
 * The tool `calculate`, argument `{ expression: string }`: evaluates arithmetic without running code. Its
 * result is the number as text; what cannot be evaluated is an error result that says why.
 *
 * @example
 * ```ts
 * const tools = new ToolRegistry().register(calculateTool);
 * const { forLLM } = await tools.execute('calculate', { expression: '2 + 2 * 3' }); // '8'
 * ```
 */
export const calculateTool: ToolDefinition = defineTool({
  name: 'calculate',
  description: CALCULATE_DESCRIPTION,
  parameters: {
    type: 'object',
    properties: { expression: { type: 'string', description: EXPRESSION_DESCRIPTION } },
    required: ['expression'],
  },
  annotations: { title: 'Calculate', readOnly: true },
  execute: ({ expression }) => formatNumber(evaluateExpression(String(expression))),
});
