import { checkNumbers } from '../../errors/check-numbers.js';

/** How much a store of conversations keeps. */
export interface StoreLimits {
  /** Conversations at most; a new one takes the place of the one that was used longest ago (10,000). */
  readonly maxConversations?: number;
  /** Milliseconds after its last turn until a conversation is forgotten (a day); `Infinity`: never. */
  readonly expiresAfterMs?: number;
  /** The clock, in milliseconds; default: `Date.now`. */
  readonly now?: () => number;
}

/**
 * The limits with their defaults.
 *
 * @throws ToolDeclarationError (502) where a number is none.
 */
export function storeLimits(where: string, limits: StoreLimits): Required<StoreLimits> {
  checkNumbers(where, limits, {
    maxConversations: { min: 1, isWhole: true, allowsInfinity: true },
    expiresAfterMs: { min: 1, allowsInfinity: true },
  });
  const { maxConversations = 10_000, expiresAfterMs = 86_400_000, now = Date.now } = limits;
  return { maxConversations, expiresAfterMs, now };
}
