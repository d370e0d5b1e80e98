import type { Message } from '../../contract/message.js';
import type { ToolSchema } from '../../contract/tool-schema.js';

/** Puts the results of a turn into words; without any, says what this stand-in is and can do. */
export function writeAnswer(turn: readonly Message[], tools: readonly ToolSchema[]): string {
  const purpose = (tool?: ToolSchema) =>
    tool?.function.description.split(/\.\s|\.$|\n/)[0] || tool?.function.name;
  const calls = turn.flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []) : []));
  const lines = turn.flatMap((message) => {
    if (message.role !== 'tool') return [];
    const name = calls.find(({ id }) => id === message.tool_call_id)?.function.name;
    const failed =
      /^(?!["[{]).*\b(?:error|failed|invalid|not found|timed out|refused|denied|aborted)\b/i.test(
        message.content,
      );
    const lead = purpose(tools.find((tool) => tool.function.name === name)) ?? name ?? 'Result';
    return `${lead}${failed ? ' did not work' : ''}: ${message.content}`;
  });
  if (lines.length > 0) return lines.join('\n');
  const known = tools.map((tool) => `\n- ${purpose(tool)}`).join('') || ' nothing: no tool was offered';
  return `I am the offline stand-in, not a language model, and found no tool that fits. What I can do:${known}`;
}
