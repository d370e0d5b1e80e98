import { type ConversationLog, isNewsOf } from '../contract/conversation-log.js';
import { onAbort } from '../kernel/async.js';
import type { EventsOptions } from './conversations-options.js';
import type { NumberedEvent } from './event-json.js';

/** Events that are read at once. */
const PAGE = 256;

/** The events of a conversation in order: those that are kept, then those to come, until the reader leaves. */
export async function* readEvents(
  log: ConversationLog,
  {
    conversationId,
    after = 0,
    upTo = Number.POSITIVE_INFINITY,
    signal,
  }: EventsOptions & { readonly conversationId: string },
): AsyncGenerator<NumberedEvent, undefined> {
  const news = new News();
  const unwatch = log.watch((told) => {
    if (isNewsOf(conversationId, told)) news.arrive();
  });
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
    unwatch();
    unfollow();
  }
}

/** Whether something has come since it was last expected. */
export class News {
  arrival: Promise<void> = Promise.resolve();
  #arrive: () => void = () => {};

  /** From now on, `arrival` resolves with what comes next. */
  expect(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.arrival = promise;
    this.#arrive = resolve;
  }

  arrive(): void {
    this.#arrive();
  }
}
