import type { Content, ContentPart } from '../../contract/content-part.js';
import type { Message, ToolMessage } from '../../contract/message.js';

/** A message as the wire takes it. */
export type WireMessage = Readonly<Record<string, unknown>>;

/**
 * Messages for Chat Completions. Tool messages may carry only text there, so images and files of tool
 * results follow their answers in a user message: after all answers, because the wire wants those straight
 * after the calls.
 */
export function toWireMessages(messages: readonly Message[]): readonly (Message | WireMessage)[] {
  if (!messages.some(hasParts)) return messages;
  const wire: (Message | WireMessage)[] = [];
  let attachments: WireMessage[] = [];
  const flush = (): void => {
    if (attachments.length > 0) wire.push({ role: 'user', content: attachments });
    attachments = [];
  };
  for (const message of messages) {
    if (message.role !== 'tool') flush();
    if (!hasParts(message)) {
      wire.push(message);
      continue;
    }
    const { parts, ...answer } = message;
    wire.push(answer);
    attachments.push({ type: 'text', text: `Attached to the result of ${message.tool_call_id}:` });
    attachments.push(...parts.flatMap(toWirePart));
  }
  flush();
  return wire;
}

function hasParts(message: Message): message is ToolMessage & { readonly parts: Content } {
  return message.role === 'tool' && message.parts !== undefined;
}

/** Text is in the answer already. */
function toWirePart(part: ContentPart): readonly WireMessage[] {
  if (part.type === 'text') return [];
  const url = `data:${part.mimeType};base64,${part.data}`;
  if (part.type === 'image') return [{ type: 'image_url', image_url: { url } }];
  return [{ type: 'file', file: { filename: part.filename, file_data: url } }];
}
