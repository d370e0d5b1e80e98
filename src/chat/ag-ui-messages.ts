import { isRecord } from '../kernel/json.js';

/** An event of AG-UI 1.0. */
export type AgUiEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A message as AG-UI has it. */
export interface AgUiMessage {
  readonly id: string;
  readonly role: string;
  readonly content?: unknown;
  readonly toolCallId?: string;
  readonly toolCalls?: readonly unknown[];
  readonly metadata?: object;
}

/** Something that a turn has said, in order. */
export type ToldItem =
  | { readonly kind: 'text' | 'reasoning'; readonly id: string; readonly text: string }
  | {
      readonly kind: 'call';
      readonly id: string;
      readonly parent: string;
      readonly tool: string;
      args: string;
    }
  | {
      readonly kind: 'result';
      readonly id: string;
      readonly callId: string;
      readonly text: string;
      readonly metadata: object;
    };

/** The messages that clients make of what a turn has said. */
export function messagesOf(items: readonly ToldItem[]): readonly AgUiMessage[] {
  const messages = new Map<string, AgUiMessage>();
  for (const item of items) {
    if (item.kind === 'call') addCall(messages, item);
    else messages.set(item.id, messageOf(item));
  }
  return [...messages.values()];
}

function messageOf(item: Exclude<ToldItem, { readonly kind: 'call' }>): AgUiMessage {
  const { id, text: content } = item;
  if (item.kind === 'result')
    return { id, role: 'tool', content, toolCallId: item.callId, metadata: item.metadata };
  return { id, role: item.kind === 'text' ? 'assistant' : 'reasoning', content };
}

function addCall(
  messages: Map<string, AgUiMessage>,
  { id, parent, tool, args }: Extract<ToldItem, { readonly kind: 'call' }>,
): void {
  const message = messages.get(parent) ?? { id: parent, role: 'assistant' };
  const call = { id, type: 'function', function: { name: tool, arguments: args } };
  messages.set(parent, { ...message, toolCalls: [...(message.toolCalls ?? []), call] });
}

const ROLES = ['developer', 'system', 'assistant', 'user', 'tool', 'activity', 'reasoning'];

/** The messages of a client that are messages at all: they are given back to it in snapshots, and to nobody else. */
export function clientMessages(messages: unknown): readonly AgUiMessage[] {
  if (!Array.isArray(messages)) return [];
  return messages.filter(
    (message): message is AgUiMessage =>
      isRecord(message) && typeof message.id === 'string' && ROLES.includes(String(message.role)),
  );
}
