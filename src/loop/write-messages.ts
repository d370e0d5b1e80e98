import type { AssistantMessage, ToolMessage } from '../contract/message.js';
import type { ToolResult } from '../contract/tool-result.js';
import { TOOL_NAME } from '../discovery/tool-name.js';
import { resultText } from '../registry/result-text.js';
import type { ReadCall } from './read-call.js';

/** A reply as the history keeps it. */
export function assistantMessage(content: string, calls: readonly ReadCall[]): AssistantMessage {
  if (calls.length === 0) return { role: 'assistant', content };
  const tool_calls = calls.map((call) => ({
    id: call.id,
    type: 'function' as const,
    // Strict servers parse the history, and refuse the whole request for one broken call in it. What was
    // really sent stands in the call's record and in its answer.
    function: { name: functionName(call.name), arguments: call.text ?? '{}' },
  }));
  return { role: 'assistant', content, tool_calls };
}

/** The answer to one call, and below it what else there is to say about the call. */
export function toolMessage(
  toolCallId: string,
  result: ToolResult,
  notes: readonly string[] = [],
): ToolMessage {
  const text = resultText(result) || attachmentsText(result);
  const isMoreThanText = result.content?.some(({ type }) => type !== 'text');
  return {
    role: 'tool',
    content: [text, ...notes].join('\n\n'),
    tool_call_id: toolCallId,
    ...(isMoreThanText ? { parts: result.content } : {}),
  };
}

/** Images and files that come without a word: a model that gets only text should know of them. */
function attachmentsText({ content = [] }: ToolResult): string {
  return content
    .flatMap((part) => (part.type === 'text' ? [] : [`[${part.type}: ${part.mimeType}]`]))
    .join('\n');
}

/** Strict servers refuse the whole request for a name that could not be one; the record keeps what was sent. */
function functionName(name: string): string {
  return TOOL_NAME.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed';
}
