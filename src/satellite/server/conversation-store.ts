import type {
  ConversationStore,
  ConversationTurn,
  StoredConversation,
} from '../../contract/conversation-store.js';
import { checkOptions } from '../../errors/author-fault.js';
import { COUNT_LIMIT, FUNCTION, MILLISECONDS, optionTable, type RulesOf } from '../../kernel/options.js';

/** How much a store of conversations keeps. */
export interface StoreLimits {
  /** Conversations at most; a new one takes the place of the one that was used longest ago (10,000). */
  readonly maxConversations?: number;
  /** Milliseconds after its last turn until a conversation is forgotten (a day); `Infinity`: never. */
  readonly expiresAfterMs?: number;
  /** The clock, in milliseconds; default: `Date.now`. */
  readonly now?: () => number;
}

/** What each of them may be. */
export const STORE_LIMIT_RULES: RulesOf<StoreLimits> = {
  maxConversations: COUNT_LIMIT,
  expiresAfterMs: MILLISECONDS,
  now: FUNCTION,
};

/** The limits with their defaults. */
export function storeLimits(limits: StoreLimits): Required<StoreLimits> {
  const { maxConversations = 10_000, expiresAfterMs = 86_400_000, now = Date.now } = limits;
  return { maxConversations, expiresAfterMs, now };
}

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
