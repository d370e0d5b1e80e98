import type { ConversationStore, ConversationTurn, StoredConversation } from './conversation-store.js';
import { type StoreLimits, storeLimits } from './store-limits.js';

type Entry = StoredConversation & { readonly usedAt: number };

/**
 * Keeps conversations in the memory of this process: a restart forgets them.
 *
 * @example
 * ```ts
 * const store = new MemoryConversationStore({ maxConversations: 500, expiresAfterMs: 3_600_000 });
 * const handler = createAssistantHandler({ provider, model, store });
 * ```
 */
export class MemoryConversationStore implements ConversationStore {
  readonly #limits: Required<StoreLimits>;
  /** In the order of their last turns. */
  readonly #entries = new Map<string, Entry>();

  /** @throws ToolDeclarationError (502) where a limit is no number. */
  constructor(limits: StoreLimits = {}) {
    this.#limits = storeLimits('new MemoryConversationStore', limits);
  }

  async load(conversationId: string): Promise<StoredConversation | undefined> {
    this.#dropExpired();
    return this.#entries.get(conversationId);
  }

  async append(conversationId: string, turn: ConversationTurn): Promise<boolean> {
    this.#dropExpired();
    const before = this.#entries.get(conversationId);
    if (before?.turnId !== turn.after) return false;
    this.#entries.delete(conversationId);
    this.#entries.set(conversationId, {
      turnId: turn.id,
      messages: [...(before?.messages ?? []), ...turn.messages],
      finishReason: turn.finishReason,
      usedAt: this.#limits.now(),
    });
    for (const [oldest] of this.#entries) {
      if (this.#entries.size <= this.#limits.maxConversations) break;
      this.#entries.delete(oldest);
    }
    return true;
  }

  #dropExpired(): void {
    const limit = this.#limits.now() - this.#limits.expiresAfterMs;
    for (const [id, { usedAt }] of this.#entries) {
      if (usedAt > limit) break;
      this.#entries.delete(id);
    }
  }
}
