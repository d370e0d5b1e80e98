import type { AssistantMessage, Message, MessageToolCall, ToolMessage } from '../../contract/message.js';

/**
 * Writes calls and their results as the text that a model without native calling knows: calls as
 * `<tool_call>` in the assistant's message, results as `<tool_response>` in one user message. All other
 * messages are handed on as they are.
 */
export function rewriteHistory(messages: readonly Message[]): readonly Message[] {
  const names = new Map<string, string>();
  const rewritten: Message[] = [];
  let responses: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      responses.push(responseText(message, names.get(message.tool_call_id)));
      continue;
    }
    rewritten.push(...responseMessages(responses));
    responses = [];
    if (message.role !== 'assistant') rewritten.push(message);
    else rewritten.push(withCallsAsText(message));
    for (const { id, name } of callsOf(message)) names.set(id, name);
  }
  return [...rewritten, ...responseMessages(responses)];
}

function callsOf(message: Message): readonly { readonly id: string; readonly name: string }[] {
  if (message.role !== 'assistant') return [];
  return (message.tool_calls ?? []).map(({ id, function: { name } }) => ({ id, name }));
}

/** One message for all results of a turn: many chat templates insist that user and assistant alternate. */
function responseMessages(responses: readonly string[]): readonly Message[] {
  return responses.length === 0 ? [] : [{ role: 'user', content: responses.join('\n') }];
}

function withCallsAsText(message: AssistantMessage): AssistantMessage {
  const { tool_calls: calls = [], ...rest } = message;
  if (calls.length === 0) return message;
  const text = message.content?.trim() ? [message.content] : [];
  return { ...rest, content: [...text, ...calls.map(callText)].join('\n') };
}

function callText({ function: { name, arguments: args } }: MessageToolCall): string {
  const json = isJson(args) ? args : JSON.stringify(args);
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${json}}\n</tool_call>`;
}

function responseText({ content }: ToolMessage, name: string | undefined): string {
  const json = JSON.stringify(name === undefined ? { content } : { name, content });
  // JSON allows `<\/`, so that a result cannot close its own tag and speak for the user.
  return `<tool_response>\n${json.replaceAll('</', '<\\/')}\n</tool_response>`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
