import type { PendingCall } from '../contract/call.js';
import { MAX_TIMER_MS } from '../kernel/async.js';

/** Tells of conversations whose answers come too late from now on. */
export class ExpiryWatch {
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #onExpiry: (conversationId: string) => void;
  #isClosed = false;

  constructor(onExpiry: (conversationId: string) => void) {
    this.#onExpiry = onExpiry;
  }

  /** A conversation waits for these, some of which may be answered only until some time. */
  expect(conversationId: string, pending: readonly PendingCall[]): void {
    clearTimeout(this.#timers.get(conversationId));
    this.#timers.delete(conversationId);
    const times = pending.flatMap(({ expiresAt }) =>
      expiresAt === undefined ? [] : [Date.parse(expiresAt)],
    );
    if (times.length === 0 || this.#isClosed) return;
    const look = (): void => {
      this.#timers.delete(conversationId);
      this.#onExpiry(conversationId);
    };
    const wait = Math.max(Math.min(...times) - Date.now() + 1, 1);
    this.#timers.set(conversationId, setTimeout(look, Math.min(wait, MAX_TIMER_MS)).unref());
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }
}
