import type { Content } from './content-part.js';

/** One call as the Chat Completions wire carries it; `arguments` is JSON text. */
export interface MessageToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Instructions for the model. */
export interface SystemMessage {
  readonly role: 'system' | 'developer';
  readonly content: string;
}

/** What a person (or the framework, for them) said. Parts are passed to the provider as they are. */
export interface UserMessage {
  readonly role: 'user';
  readonly content: string | readonly unknown[];
  readonly name?: string;
}

/** What the model said, with the calls it made. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly tool_calls?: readonly MessageToolCall[];
}

/** The answer to exactly one call of the assistant message before it. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly content: string;
  readonly tool_call_id: string;
  /**
   * All parts of a result that is more than text; not on the wire as it is: a provider maps them to what
   * its API takes, or leaves them out.
   */
  readonly parts?: Content;
}

/** One entry of the history, in the wire shape of Chat Completions. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;
