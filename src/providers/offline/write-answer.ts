import type { Message } from '../../contract/message.js';
import type { ToolSchema } from '../../contract/tool-schema.js';

// The history does not mark failures: prose that says so in its first line is one, data is not.
const FAILED = /^(?!["[{]).*\b(?:error|failed|invalid|not found|timed out|refused|denied|aborted)\b/i;

/** Puts the results of a turn into words; without any, says what this stand-in is and what it can do. */
export function writeAnswer(turn: readonly Message[], tools: readonly ToolSchema[]): string {
  const purposes = new Map(
    tools.map(({ function: { name, description } }) => [name, description.split(/\.(?!\S)|\n/)[0]]),
  );
  const calls = turn.flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []) : []));
  const lines = turn.flatMap((message) => {
    if (message.role !== 'tool') return [];
    const name = calls.find(({ id }) => id === message.tool_call_id)?.function.name ?? 'Result';
    return `${purposes.get(name) || name}${FAILED.test(message.content) ? ' did not work' : ''}: ${message.content}`;
  });
  if (lines.length > 0) return lines.join('\n');
  const known =
    [...purposes].map(([name, purpose]) => `\n- ${purpose || name}`).join('') || ' nothing, without tools.';
  return `I am the offline stand-in, not a language model, and found no tool that fits. I can do:${known}`;
}
