/** One response that somebody may or may not read. */
export interface UnreadStream {
  /** Ends it: nobody reads it, and others need the room. */
  drop(): void;
}

interface Held {
  bytes: number;
  readAt: number;
}

/**
 * What was written for clients and not read by them yet, of all responses of a server. Where that becomes too
 * much, the responses whose readers have stood still longest are ended; the last one left may be of any size.
 */
export class UnreadBytes {
  readonly #most: number;
  readonly #held = new Map<UnreadStream, Held>();
  #total = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Something was written for a stream's client. */
  add(stream: UnreadStream, bytes: number): void {
    const held = this.#held.get(stream) ?? { bytes: 0, readAt: performance.now() };
    this.#held.set(stream, held);
    held.bytes += bytes;
    this.#total += bytes;
    while (this.#total > this.#most && this.#held.size > 1) {
      const stalled = this.#longestStalled();
      this.end(stalled);
      stalled.drop();
    }
  }

  /** The client has read some of it. */
  read(stream: UnreadStream, bytes: number): void {
    const held = this.#held.get(stream);
    if (held === undefined) return;
    held.readAt = performance.now();
    held.bytes -= bytes;
    this.#total -= bytes;
    if (held.bytes <= 0) this.#held.delete(stream);
  }

  /** Nothing of the stream is kept any more. */
  end(stream: UnreadStream): void {
    this.#total -= this.#held.get(stream)?.bytes ?? 0;
    this.#held.delete(stream);
  }

  #longestStalled(): UnreadStream {
    const [first, ...others] = this.#held;
    if (first === undefined) throw new RangeError('no stream is unread');
    return others.reduce(
      (stalled, other) => (other[1].readAt < stalled[1].readAt ? other : stalled),
      first,
    )[0];
  }
}
