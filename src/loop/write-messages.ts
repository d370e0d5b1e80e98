import type { ToolCall } from '../contract/llm-provider.js';
import type { AssistantMessage, ToolMessage } from '../contract/message.js';
import type { ToolResult } from '../contract/tool-result.js';
import { resultText } from '../registry/result-text.js';

/** A reply as the history keeps it (seed 1.20). */
export function assistantMessage(content: string, calls: readonly ToolCall[]): AssistantMessage {
  if (calls.length === 0) return { role: 'assistant', content };
  const tool_calls = calls.map(({ id, name, arguments: args }) => ({
    id,
    type: 'function' as const,
    function: { name: functionName(name), arguments: argumentsText(args) },
  }));
  return { role: 'assistant', content, tool_calls };
}

/** The answer to one call (seed 1.22). */
export function toolMessage(toolCallId: string, result: ToolResult): ToolMessage {
  return { role: 'tool', content: resultText(result), tool_call_id: toolCallId };
}

/** Strict servers refuse the whole request for a name that could not be one; the record keeps what was sent. */
function functionName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed';
}

/**
 * Always the text of a JSON object: strict servers parse the history, and refuse the whole request for
 * one broken call in it. What was really sent stands in the call's record and in its answer.
 */
function argumentsText(args: unknown): string {
  try {
    const text = typeof args === 'string' ? args : JSON.stringify(args);
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? text : '{}';
  } catch {
    return '{}';
  }
}
