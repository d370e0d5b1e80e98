import { type ConversationLog, isNewsOf } from '../contract/conversation-log.js';
import { onAbort } from '../kernel/async.js';
import type { EventsOptions } from './conversations-options.js';
import type { NumberedEvent } from './event-json.js';

/** Events that are read at once. */
const PAGE = 256;

/** The events of a conversation in order: those that are stored, then those to come, until the reader leaves. */
export async function* readEvents(
  log: ConversationLog,
  conversationId: string,
  { after = 0, upTo = Number.POSITIVE_INFINITY, signal }: EventsOptions,
): AsyncGenerator<NumberedEvent, undefined> {
  const news = new News(log, conversationId);
  const unfollow = signal === undefined ? () => {} : onAbort(signal, () => news.arrive());
  let last = after;
  try {
    while (!signal?.aborted && last < upTo) {
      news.expect();
      const page = await log.events({ conversationId, after: last, limit: PAGE });
      for (const event of page) {
        if (signal?.aborted || event.number > upTo) return undefined;
        last = event.number;
        yield event as NumberedEvent;
      }
      if (page.length > 0) continue;
      if (upTo !== Number.POSITIVE_INFINITY) return undefined;
      await news.arrival;
    }
    return undefined;
  } finally {
    news.close();
    unfollow();
  }
}

/** News of one conversation: whether something has come since it was last expected. */
export class News {
  /** Ends the watching. */
  readonly close: () => void;
  #next = Promise.withResolvers<void>();

  constructor(log: ConversationLog, conversationId: string) {
    this.close = log.watch((news) => {
      if (isNewsOf(conversationId, news)) this.arrive();
    });
  }

  get arrival(): Promise<void> {
    return this.#next.promise;
  }

  /** From now on, `arrival` resolves with what comes next. */
  expect(): void {
    this.#next = Promise.withResolvers<void>();
  }

  arrive(): void {
    this.#next.resolve();
  }
}
