import type {
  LanguageModelV4,
  LanguageModelV4Message,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import type { Message, ToolMessage } from '../contract/llm-provider.js';
import type { Content } from '../contract/tool-result.js';
import { restoreParts } from './kept-parts.js';
import { userParts } from './user-parts.js';

/** Whose prompt it is. */
interface PromptOptions {
  readonly model: LanguageModelV4;
  /** The key of the items that this model understands. */
  readonly key: string;
  /** Names of the tools that a search has found and the model is to be told of. */
  readonly found: ReadonlySet<string>;
}

/**
 * The messages of a request as an AI SDK model takes them.
 */
export async function toPrompt(
  messages: readonly Message[],
  { model, key, found }: PromptOptions,
): Promise<LanguageModelV4Message[]> {
  const prompt: LanguageModelV4Message[] = [];
  const tools = new Map<string, string>();
  for (const message of messages) {
    if (message.role === 'tool')
      addResult(prompt, resultPart(message, found, tools.get(message.tool_call_id)));
    else if (message.role === 'assistant') {
      for (const { id, function: called } of message.tool_calls ?? []) tools.set(id, called.name);
      const content = [...restoreParts(message, key)];
      // APIs refuse messages with nothing in them.
      if (content.length > 0) prompt.push({ role: 'assistant', content });
    } else if (message.role === 'user')
      prompt.push({ role: 'user', content: await userParts(message, model) });
    else prompt.push({ role: 'system', content: message.content });
  }
  return prompt;
}

/** All results that answer one message stand in one message. */
function addResult(prompt: LanguageModelV4Message[], part: LanguageModelV4ToolResultPart): void {
  const last = prompt.at(-1);
  if (last?.role === 'tool') last.content.push(part);
  else prompt.push({ role: 'tool', content: [part] });
}

function resultPart(
  message: ToolMessage,
  found: ReadonlySet<string>,
  toolName = message.tool_call_id,
): LanguageModelV4ToolResultPart {
  const references = (message.found ?? []).filter((name) => found.has(name));
  const { content, parts, isError, tool_call_id: toolCallId } = message;
  const output = references.length > 0 ? toReferences(references) : toOutput(content, { parts, isError });
  return { type: 'tool-result', toolCallId, toolName, output };
}

/** Names in place of definitions: the API puts those there. */
function toReferences(names: readonly string[]): LanguageModelV4ToolResultOutput {
  const value = names.map((toolName) => ({
    type: 'custom' as const,
    providerOptions: { anthropic: { type: 'tool-reference', toolName } },
  }));
  return { type: 'content', value };
}

/**
 * A result as models take it. Its texts are in the text already; images and files follow. An error that has such is
 * told by its text alone: with them, the AI SDK has no word for it.
 */
export function toOutput(
  text: string,
  { parts = [], isError }: { readonly parts?: Content; readonly isError?: boolean },
): LanguageModelV4ToolResultOutput {
  const files = parts.flatMap((part) => {
    if (part.type === 'text') return [];
    const { mimeType: mediaType } = part;
    const data = { type: 'data', data: part.data } as const;
    return [
      { type: 'file' as const, data, mediaType, ...(part.type === 'file' && { filename: part.filename }) },
    ];
  });
  if (files.length === 0) return { type: isError ? 'error-text' : 'text', value: text };
  const texts = text === '' ? [] : [{ type: 'text' as const, text }];
  return { type: 'content', value: [...texts, ...files] };
}
