import { COUNT_LIMIT, FUNCTION, MILLISECONDS } from '../../kernel/option-rules.js';
import type { RulesOf } from '../../kernel/options.js';

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
