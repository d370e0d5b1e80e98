import type { FinishReason, ProviderItems } from './llm-provider.js';

/** One message of a stored conversation, as the provider gets it: results of tools are user messages. */
export interface StoredMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** Of the assistant: what the model thought, which neither a model nor a client is sent. */
  readonly reasoning?: string;
  /** Of the assistant: data that only the provider reads. */
  readonly providerItems?: ProviderItems;
}

/** What one request added to a conversation. */
export interface ConversationTurn {
  /** Names the turn; the next one says that it comes after this one. */
  readonly id: string;
  /** `id` of the turn before; `undefined` for the first. */
  readonly after: string | undefined;
  /** The owner as JSON, if the assistant distinguishes its clients; stored with the first turn. */
  readonly owner?: unknown;
  /** What was sent, and the reply as the last. */
  readonly messages: readonly StoredMessage[];
  readonly finishReason: FinishReason;
}

/** A conversation as it stands. Whether a request is pending is to be read from its last message. */
export interface StoredConversation {
  /** `id` of the last turn. */
  readonly turnId: string;
  /** Of the first turn: for other clients the conversation does not exist. */
  readonly owner?: unknown;
  /** Of all turns, oldest first; the last is the model's. */
  readonly messages: readonly StoredMessage[];
  /** Of the last turn. */
  readonly finishReason: FinishReason;
}

/**
 * Where an assistant stores its conversations. The package brings `MemoryConversationStore`, `SqliteConversationStore` and
 * `PostgresConversationStore`; they may drop conversations that expired or are too many.
 */
export interface ConversationStore {
  /** The conversation, unless there is none or it expired. */
  load(conversationId: string): Promise<StoredConversation | undefined>;
  /**
   * Adds a turn, all of it or nothing. `false`, and nothing is added, where the conversation's last turn is
   * not `turn.after`: another request was faster.
   */
  append(conversationId: string, turn: ConversationTurn): Promise<boolean>;
}
