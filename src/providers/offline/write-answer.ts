import type { Message } from '../../contract/message.js';
import type { ToolSchema } from '../../contract/tool-schema.js';

/** Quotes the results of a turn; without any, says what this is, `why` it calls nothing, what it can do. */
export function writeAnswer(turn: readonly Message[], tools: readonly ToolSchema[], why: string): string {
  const offered = tools.map((tool) => tool.function);
  const purposeOf = (name: string) =>
    offered.find((one) => one.name === name)?.description.split(/\.(?!\S)|\n/)[0] || name;
  const calls = turn.flatMap((message) => (message.role === 'assistant' && message.tool_calls) || []);
  const results = turn.flatMap((message) => {
    if (message.role !== 'tool') return [];
    const call = calls.find(({ id }) => id === message.tool_call_id);
    return `${purposeOf(call?.function.name ?? 'Result')}: ${message.content}`;
  });
  if (results.length > 0) return results.join('\n');
  const known = offered.map(({ name }) => `\n- ${purposeOf(name)}`).join('') || ' nothing, without tools.';
  return `I am the offline stand-in, not a language model, and ${why}. I can do:${known}`;
}
