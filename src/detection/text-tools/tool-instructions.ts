import type { ToolSchema } from '../../contract/tool-schema.js';

/**
 * What a model without native calling is told about its tools: the Hermes form, which most open models
 * have seen in training. The same tools give the same bytes, so that prompt caches hold.
 */
export function toolInstructions(tools: readonly ToolSchema[]): string {
  return [
    '# Tools',
    '',
    'You can call the functions below. Each line is one function as JSON, with a JSON Schema of its arguments.',
    '',
    '<tools>',
    ...tools.map((tool) => JSON.stringify(tool)),
    '</tools>',
    '',
    'To call a function, write one JSON object between <tool_call> tags, exactly like this:',
    '',
    '<tool_call>',
    '{"name": "the_function", "arguments": {"key": "value"}}',
    '</tool_call>',
    '',
    'Use only the names above and only arguments that fit the schema. For several calls write several',
    '<tool_call> blocks. Then stop: the results come in the next message between <tool_response> tags. If no',
    'function is needed, answer in plain text and write no <tool_call>.',
  ].join('\n');
}
