import type { ChatMessage, ChatRequest } from '../chat-protocol.js';
import { isConversationId } from '../conversation-id.js';
import { HttpFault } from './http-fault.js';

type Fields = Readonly<Record<string, unknown>>;

const FIELDS: Readonly<Record<ChatMessage['role'], readonly string[]>> = {
  user: ['role', 'content'],
  tool_result: ['role', 'name', 'content'],
};

/** The request in a body. Throws an {@link HttpFault} that names the first field that is wrong. */
export function readChatRequest(body: unknown): ChatRequest {
  const { conversation_id: id, messages } = object(body, 'the body');
  refuseOthers(body as Fields, ['conversation_id', 'messages'], 'the body');
  if (!Array.isArray(messages) || messages.length === 0)
    throw wrong('messages must be an array with at least one message');
  return {
    // Clients in other languages write null for what they leave out.
    ...(id === undefined || id === null ? {} : { conversation_id: checkConversationId(id) }),
    messages: messages.map((message, index) => readMessage(message, `messages[${index}]`)),
  };
}

/** The id of a conversation. Throws an {@link HttpFault} where it is none. */
export function checkConversationId(value: unknown): string {
  if (isConversationId(value)) return value;
  const rule = '1 to 128 letters, digits and . _ ~ : @ -, beginning with a letter or a digit';
  throw wrong(`conversation_id must be ${rule}`);
}

function readMessage(value: unknown, where: string): ChatMessage {
  const message = object(value, where);
  const { role, name, content } = message;
  if (role !== 'user' && role !== 'tool_result') throw wrong(`${where}.role must be "user" or "tool_result"`);
  refuseOthers(message, FIELDS[role], where);
  if (typeof content !== 'string') throw wrong(`${where}.content must be a string`);
  if (role === 'user') {
    // Some providers refuse such a message, which would then look like their failure.
    if (content.trim() === '') throw wrong(`${where}.content must not be blank`);
    return { role, content };
  }
  if (typeof name !== 'string' || name.trim() === '')
    throw wrong(`${where}.name must be a string, not blank`);
  return { role, name, content };
}

function object(value: unknown, where: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw wrong(`${where} must be an object`);
}

function refuseOthers(fields: Fields, known: readonly string[], where: string): void {
  const other = Object.keys(fields).find((name) => !known.includes(name));
  if (other !== undefined)
    throw wrong(`${where} has an unknown field ${JSON.stringify(other.slice(0, 100))}`);
}

function wrong(problem: string): HttpFault {
  return new HttpFault('invalid_request', problem);
}
