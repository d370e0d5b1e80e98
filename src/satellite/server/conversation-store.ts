import type { FinishReason, ProviderItems } from '../../contract/llm-provider.js';
import { checkOptions } from '../../errors/author-fault.js';
import { COUNT_LIMIT, FUNCTION, MILLISECONDS, optionTable, type RulesOf } from '../../kernel/options.js';

/** One message of a stored conversation, as the provider gets it: results of tools are user messages. */
export interface StoredMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** Of the assistant: what the model thought, which neither a model nor a client is sent. */
  readonly reasoning?: string;
  /** Of the assistant: what the provider keeps with the message, for nobody else. */
  readonly providerItems?: ProviderItems;
}

/** What one request added to a conversation. */
export interface ConversationTurn {
  /** Names the turn; the next one says that it comes after this one. */
  readonly id: string;
  /** `id` of the turn before; `undefined` for the first. */
  readonly after: string | undefined;
  /** Who asked, as JSON, where the assistant tells its clients apart; kept with the first turn. */
  readonly owner?: unknown;
  /** What was sent, and the reply as the last. */
  readonly messages: readonly StoredMessage[];
  readonly finishReason: FinishReason;
}

/** A conversation as it stands. Whether a request is pending is to be read from its last message. */
export interface StoredConversation {
  /** `id` of the last turn. */
  readonly turnId: string;
  /** Of the first turn: others are told that there is no such conversation. */
  readonly owner?: unknown;
  /** Of all turns, oldest first; the last is the model's. */
  readonly messages: readonly StoredMessage[];
  /** Of the last turn. */
  readonly finishReason: FinishReason;
}

/**
 * Where an assistant keeps its conversations. The package brings `MemoryConversationStore` and
 * `SqliteConversationStore`; both may drop conversations that expired or are too many.
 */
export interface ConversationStore {
  /** The conversation, unless there is none or it expired. */
  load(conversationId: string): Promise<StoredConversation | undefined>;
  /**
   * Adds a turn, all of it or nothing. `false`, and nothing is added, where the conversation's last turn is
   * not `turn.after`: somebody else was faster.
   */
  append(conversationId: string, turn: ConversationTurn): Promise<boolean>;
}

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
