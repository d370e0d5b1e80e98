/** What the page shows and what may have changed of it. */
type Topic = 'tools' | 'calls' | 'runs' | 'pending' | 'held' | 'recordings';

interface WrittenText {
  readonly runId: string;
  readonly text: string;
}

const HEARTBEAT_MS = 15_000;
const MOST_TEXT = 100_000;

/** What a reader has not received yet: bounded, however slowly it reads. */
class Reader {
  readonly topics = new Set<string>();
  readonly texts = new Map<string, string>();
  wake: () => void = () => {};

  get isEmpty(): boolean {
    return this.topics.size === 0 && this.texts.size === 0;
  }

  /** The pending events, as lines of an event stream. */
  take(): string {
    const news = {
      changed: [...this.topics],
      texts: [...this.texts].map(([runId, text]) => ({ runId, text })),
    };
    this.topics.clear();
    this.texts.clear();
    return `data: ${JSON.stringify(news)}\n\n`;
  }
}

/** Tells the open pages what has changed. They ask for it themselves: a page that is slow misses nothing. */
export class EventFeed {
  readonly #readers = new Set<Reader>();
  #isClosed = false;

  /** Whether a page is open. */
  get isHeard(): boolean {
    return this.#readers.size > 0;
  }

  tell(topic: Topic): void {
    for (const reader of this.#readers) {
      reader.topics.add(topic);
      reader.wake();
    }
  }

  write({ runId, text }: WrittenText): void {
    for (const reader of this.#readers) {
      const known = reader.texts.get(runId) ?? '';
      if (known.length + text.length <= MOST_TEXT) reader.texts.set(runId, known + text);
      reader.wake();
    }
  }

  /** An event stream of what changes from now on. */
  stream(signal: AbortSignal): ReadableStream<Uint8Array> {
    const reader = new Reader();
    const encoder = new TextEncoder();
    this.#readers.add(reader);
    const leave = (): void => {
      this.#readers.delete(reader);
      reader.wake();
    };
    signal.addEventListener('abort', leave, { once: true });
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => controller.enqueue(encoder.encode(': open\n\n')),
        pull: async (controller) => {
          if (reader.isEmpty && this.#readers.has(reader)) await this.#news(reader);
          if (this.#isClosed || !this.#readers.has(reader)) controller.close();
          else controller.enqueue(encoder.encode(reader.isEmpty ? ': alive\n\n' : reader.take()));
        },
        cancel: leave,
      },
      { highWaterMark: 0 },
    );
  }

  close(): void {
    this.#isClosed = true;
    for (const reader of [...this.#readers]) {
      this.#readers.delete(reader);
      reader.wake();
    }
  }

  #news(reader: Reader): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, HEARTBEAT_MS);
      timer.unref();
      reader.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
