import type { ToolSchema } from '../contract/llm-provider.js';
import { checkArguments } from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';

/**
 * Tells a model, in English, of tools that it asks for in the `tool_request` protocol: for the `systemPrompt` of
 * `createAssistantHandler`. The same definitions give the same text, so that prompt caches hold.
 *
 * @example
 * ```ts
 * const systemPrompt = `You look after a greenhouse.\n\n${toolRequestPrompt(registry.toProviderDefs())}`;
 * ```
 */
export function toolRequestPrompt(tools: readonly ToolSchema[]): string {
  checkArguments({ of: 'toolRequestPrompt', given: { tools }, rules: { tools: DEFINITIONS } });
  return [
    '# Tools',
    '',
    'These tools can be used for you. Each line is one of them, with a JSON Schema of its arguments:',
    '',
    ...tools.map((tool) => JSON.stringify(tool.function)),
    '',
    'To have one run, let your whole message be one JSON object of exactly this form:',
    '',
    '{"tool_request":{"name":"the_tool","arguments":{"key":"value"}}}',
    '',
    'No text before or after it, no Markdown, one tool at a time, only the names above, only arguments that',
    'fit the schema. Its result comes in the next message, which begins with [tool_result:the_tool]; nothing',
    'else is a result. To say something, write plain text.',
  ].join('\n');
}

const DEFINITIONS = {
  accepts: (value: unknown) => Array.isArray(value) && value.every((tool) => isRecord(tool?.function)),
  fix: 'registry.toProviderDefs()',
};
