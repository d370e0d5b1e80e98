import { callListener } from '../invocation/call-listener.js';
import type { ConversationEvent } from './conversation-event.js';

/** Hears what happens in a conversation; what it throws or returns changes nothing. */
export type ConversationListener = (event: ConversationEvent) => unknown;

/** Tells every listener of every event, in one order: what a listener sets off is told after what it hears. */
export class EventHub {
  readonly #subscriptions = new Set<{ readonly listener: ConversationListener }>();
  readonly #waiting: ConversationEvent[] = [];
  readonly #onError: (error: unknown) => void;
  #isTelling = false;

  /** `onError` hears of listeners that threw. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get hasListeners(): boolean {
    return this.#subscriptions.size > 0;
  }

  /** The same listener may be subscribed twice, and is then told twice. */
  subscribe(listener: ConversationListener): () => void {
    const subscription = { listener };
    this.#subscriptions.add(subscription);
    return () => {
      this.#subscriptions.delete(subscription);
    };
  }

  tell(event: ConversationEvent): void {
    this.#waiting.push(event);
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift())
      this.#tellAll(next);
    this.#isTelling = false;
  }

  #tellAll(event: ConversationEvent): void {
    for (const subscription of [...this.#subscriptions]) {
      if (!this.#subscriptions.has(subscription)) continue;
      callListener(() => subscription.listener(event), this.#onError);
    }
  }
}
