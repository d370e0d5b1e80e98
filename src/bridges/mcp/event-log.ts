import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server';

interface LoggedEvent {
  readonly id: string;
  readonly stream: string;
  readonly message: JSONRPCMessage | undefined;
  readonly size: number;
}

/** Characters of all messages that one session keeps. */
const MOST_CHARACTERS = 4 * 1024 * 1024;

/** The last messages of one session, for a client that comes back after its stream broke. */
export class EventLog implements EventStore {
  readonly #size: number;
  readonly #events: LoggedEvent[] = [];
  #count = 0;
  #characters = 0;

  constructor(size: number) {
    this.#size = size;
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    this.#count += 1;
    const id = `${stream}_${this.#count}`;
    const size = charactersOf(message);
    this.#events.push({ id, stream, message, size });
    this.#characters += size;
    while (this.#events.length > this.#size || this.#characters > MOST_CHARACTERS)
      this.#characters -= this.#events.shift()?.size ?? 0;
    return id;
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    const end = id.lastIndexOf('_');
    return end > 0 ? id.slice(0, end) : undefined;
  }

  /** Everything of the same stream after an event; all that is left of it, where the event itself is gone. */
  async replayEventsAfter(
    lastId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const stream = (await this.getStreamIdForEventId(lastId)) ?? '';
    const number = Number(lastId.slice(stream.length + 1));
    for (const event of [...this.#events]) {
      if (event.stream !== stream || numberOf(event) <= number) continue;
      // The first event of a stream says nothing; it only gives the client an id to come back with.
      if (event.message !== undefined && Object.keys(event.message).length > 0)
        await send(event.id, event.message);
    }
    return stream;
  }
}

/** Of its texts, which are what makes a message large. */
function charactersOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 1;
  let sum = 1;
  for (const part of Object.values(value)) sum += charactersOf(part);
  return sum;
}

function numberOf({ id, stream }: LoggedEvent): number {
  return Number(id.slice(stream.length + 1));
}
