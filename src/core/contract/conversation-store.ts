import type { FinishReason, ProviderItems } from './llm-provider.js';

/** A message of a stored conversation, as the provider receives it: results of tools are user messages. */
export interface StoredMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** Assistant messages only: the model's reasoning, which is sent neither to models nor to clients. */
  readonly reasoning?: string;
  /** Assistant messages only: data that only the provider reads. */
  readonly providerItems?: ProviderItems;
}

/** The messages that one request added to a conversation. */
export interface ConversationTurn {
  /** The next turn refers to this id in `after`. */
  readonly id: string;
  /** `id` of the previous turn; `undefined` for the first. */
  readonly after: string | undefined;
  /** The owner as JSON, if the assistant distinguishes its clients; stored with the first turn. */
  readonly owner?: unknown;
  /** The messages that were sent, followed by the reply. */
  readonly messages: readonly StoredMessage[];
  readonly finishReason: FinishReason;
}

/** The current state of a conversation. Its last message shows whether a request is pending. */
export interface StoredConversation {
  /** `id` of the last turn. */
  readonly turnId: string;
  /** The owner in the first turn: for other clients the conversation does not exist. */
  readonly owner?: unknown;
  /** The messages of all turns, oldest first; the last is the model's. */
  readonly messages: readonly StoredMessage[];
  /** Of the last turn. */
  readonly finishReason: FinishReason;
}

/**
 * Stores the conversations of an assistant. The package contains `MemoryConversationStore`, `SqliteConversationStore`
 * and `PostgresConversationStore`. Stores may drop conversations that expired or exceed a limit.
 */
export interface ConversationStore {
  /** The conversation; `undefined` if it does not exist or has expired. */
  load(conversationId: string): Promise<StoredConversation | undefined>;
  /**
   * Adds a turn in one transaction. Returns `false`, without a change, if the conversation's last turn is not
   * `turn.after`, because another request was faster.
   */
  append(conversationId: string, turn: ConversationTurn): Promise<boolean>;
}
