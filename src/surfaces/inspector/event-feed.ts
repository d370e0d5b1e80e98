import { frameStream } from '../chat/frame-stream.js';

/** What the page shows and what may have changed. */
type Topic = 'tools' | 'calls' | 'runs' | 'pending' | 'held' | 'recordings';

/** What a model has written in one request of a run. */
interface WrittenText {
  readonly runId: string;
  readonly iteration: number;
  readonly text: string;
}

/** What a page has not received yet. The size is limited, also for slow readers. */
interface Reader {
  readonly topics: Set<Topic>;
  /** By run and request. */
  readonly texts: Map<string, WrittenText>;
  wake(): void;
}

const MAX_TEXT = 100_000;

/**
 * Reports to open pages what has changed. Pages request the new data themselves, so slow pages miss nothing.
 */
export class EventFeed {
  readonly #readers = new Set<Reader>();

  /** Whether a page is open. */
  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  report(topic: Topic): void {
    for (const reader of this.#readers) {
      reader.topics.add(topic);
      reader.wake();
    }
  }

  write({ runId, iteration, text }: WrittenText): void {
    const key = `${iteration} ${runId}`;
    for (const reader of this.#readers) {
      const known = reader.texts.get(key)?.text ?? '';
      if (known.length + text.length <= MAX_TEXT)
        reader.texts.set(key, { runId, iteration, text: known + text });
      reader.wake();
    }
  }

  /** An event stream of all changes from now on. */
  stream(signal: AbortSignal): ReadableStream<Uint8Array> {
    const reader: Reader = { topics: new Set(), texts: new Map(), wake: () => {} };
    this.#readers.add(reader);
    const onLeave = (): void => {
      this.#readers.delete(reader);
      reader.wake();
    };
    signal.addEventListener('abort', onLeave, { once: true });
    return frameStream(this.#frames(reader), onLeave);
  }

  async *#frames(reader: Reader): AsyncGenerator<string, undefined> {
    const { topics, texts } = reader;
    yield ': open\n\n';
    for (;;) {
      while (topics.size + texts.size === 0 && this.#readers.has(reader))
        await new Promise<void>((resolve) => {
          reader.wake = resolve;
        });
      if (!this.#readers.has(reader)) return;
      const news = { changed: [...topics], texts: [...texts.values()] };
      topics.clear();
      texts.clear();
      yield `data: ${JSON.stringify(news)}\n\n`;
    }
  }

  close(): void {
    for (const reader of this.#readers) {
      this.#readers.delete(reader);
      reader.wake();
    }
  }
}
