import { checkOptions } from '../../errors/invalid-options.js';
import { optionTable } from '../../kernel/options.js';
import type { ConversationStore, ConversationTurn, StoredConversation } from './conversation-store.js';
import { STORE_LIMIT_RULES, type StoreLimits, storeLimits } from './store-limits.js';

const OPTIONS = optionTable<StoreLimits>('MemoryConversationStore', STORE_LIMIT_RULES);

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

  /** @throws InvalidOptionsError (521) where a limit is no number. */
  constructor(limits: StoreLimits = {}) {
    checkOptions(limits, OPTIONS);
    this.#limits = storeLimits(limits);
  }

  async load(conversationId: string): Promise<StoredConversation | undefined> {
    return this.#find(conversationId);
  }

  async append(conversationId: string, turn: ConversationTurn): Promise<boolean> {
    this.#dropExpired();
    const before = this.#find(conversationId);
    if (before?.turnId !== turn.after) return false;
    const { owner } = before ?? turn;
    this.#entries.delete(conversationId);
    this.#entries.set(conversationId, {
      ...(owner === undefined ? {} : { owner }),
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

  #find(conversationId: string): Entry | undefined {
    const entry = this.#entries.get(conversationId);
    return entry !== undefined && this.#hasExpired(entry) ? undefined : entry;
  }

  #dropExpired(): void {
    for (const [id, entry] of this.#entries) {
      // Those behind it were used later, unless the clock was put back: `#find` looks again.
      if (!this.#hasExpired(entry)) break;
      this.#entries.delete(id);
    }
  }

  #hasExpired({ usedAt }: Entry): boolean {
    return usedAt <= this.#limits.now() - this.#limits.expiresAfterMs;
  }
}
