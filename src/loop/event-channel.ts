import type { LoopEvent } from './loop-event.js';

/** So many unread progress reports are kept; of a flood, the oldest are dropped. */
const MAX_WAITING_PROGRESS = 256;

interface Waiting {
  readonly event: LoopEvent;
  readonly taken: () => void;
}

/** Hands events from a run to one reader, one at a time: the writer goes on when the reader has taken it. */
export class EventChannel {
  #waiting: Waiting[] = [];
  #readers: ((next: IteratorResult<LoopEvent, undefined>) => void)[] = [];
  #isClosed = false;
  #waitingProgress = 0;

  /** Resolves when the event was taken, or when nobody reads any more. */
  write(event: LoopEvent): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ value: event, done: false });
      return undefined;
    }
    if (event.type === 'call-progress') this.#makeRoom();
    return new Promise((taken) => this.#waiting.push({ event, taken }));
  }

  /** The next event, as soon as there is one. Who asks again before the answer gets the one after it. */
  read(): Promise<IteratorResult<LoopEvent, undefined>> {
    const next = this.#waiting.shift();
    if (next !== undefined) {
      if (next.event.type === 'call-progress') this.#waitingProgress -= 1;
      next.taken();
      return Promise.resolve({ value: next.event, done: false });
    }
    if (this.#isClosed) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => {
      this.#readers.push(resolve);
    });
  }

  /** No more events will be written; those that wait can still be read. */
  end(): void {
    this.#isClosed = true;
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }

  /** Nobody reads any more: whoever waits to be read goes on. */
  abandon(): void {
    this.end();
    for (const { taken } of this.#waiting) taken();
    this.#waiting = [];
  }

  #makeRoom(): void {
    this.#waitingProgress += 1;
    if (this.#waitingProgress <= MAX_WAITING_PROGRESS) return;
    const oldest = this.#waiting.findIndex(({ event }) => event.type === 'call-progress');
    for (const { taken } of this.#waiting.splice(oldest, 1)) taken();
    this.#waitingProgress -= 1;
  }
}
