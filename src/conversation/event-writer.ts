import type { ConversationHold, ConversationLog } from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';

/** So many events may wait to be written before the run waits for the log. */
const MAX_WAITING = 64;

/**
 * Writes the events of a held conversation to its log, in order: what comes while a write is under way goes with
 * the next one, and pieces of text are joined.
 */
export class EventWriter {
  readonly #log: ConversationLog;
  readonly #hold: ConversationHold;
  readonly #onFailure: (error: unknown) => void;
  #waiting: JsonObject[] = [];
  #writing: Promise<void> | undefined;
  #isStopped = false;
  #last = 0;

  /** `onFailure` hears of a log that fails, and of a hold that was lost, then with `undefined`. */
  constructor(
    { log, hold }: { readonly log: ConversationLog; readonly hold: ConversationHold },
    onFailure: (error: unknown) => void,
  ) {
    this.#log = log;
    this.#hold = hold;
    this.#onFailure = onFailure;
  }

  /** Number of the last event that it has written; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** A promise only where too much waits already. */
  write(event: JsonObject): void | Promise<void> {
    if (this.#isStopped) return;
    const last = this.#waiting.at(-1);
    if (last !== undefined && isText(event) && last.type === event.type)
      this.#waiting[this.#waiting.length - 1] = { ...last, text: `${last.text}${event.text}` };
    else this.#waiting.push(event);
    this.#writing ??= this.#writeAll();
    if (this.#waiting.length > MAX_WAITING) return this.#writing;
  }

  /** What has not been written by now is another process's to tell. */
  stop(): void {
    this.#isStopped = true;
    this.#waiting = [];
  }

  /** All that was written is kept. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // What is told in the same turn of the event loop goes together.
    await Promise.resolve();
    try {
      while (this.#waiting.length > 0) {
        const events = this.#waiting;
        this.#waiting = [];
        const last = await this.#log.tell(this.#hold, events);
        if (last === undefined) return this.#onFailure(undefined);
        this.#last = last;
      }
    } catch (error) {
      this.#onFailure(error);
    } finally {
      this.#writing = undefined;
    }
  }
}

function isText({ type }: JsonObject): boolean {
  return type === 'text-delta' || type === 'reasoning-delta';
}
