import type { Db } from 'pg-boss';
import type { JobNews } from '../contract/job-engine.js';
import { callListener } from '../kernel/async.js';
import { nodeCrypto } from '../kernel/node-module.js';
import type { BossQueue } from './boss-queue.js';

/** What travels between the engines of a queue. */
type BossWord =
  | JobNews
  | { readonly type: 'cancel'; readonly jobId: string; readonly reason?: string }
  | { readonly type: 'wake' };

type ListenHandle = Awaited<ReturnType<NonNullable<Db['listen']>>>;
type Listener = (word: BossWord) => void;

/** PostgreSQL takes less than 8,000 bytes. */
const PART_LENGTH = 7800;

/** Tells all engines of a queue, by NOTIFY; words that are too long for that go in parts. */
export class BossNews {
  readonly #queue: BossQueue;
  readonly #channel: string;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<{ readonly hear: Listener }>();
  /** The word that is arriving. */
  #arriving: { readonly id: string; readonly parts: string[] } | undefined;
  #listening: Promise<ListenHandle> | undefined;
  #waking: Promise<void> | undefined;
  #isCalled = false;

  constructor(
    queue: BossQueue,
    place: { readonly name: string; readonly onError: (error: unknown) => void },
  ) {
    this.#queue = queue;
    this.#onError = place.onError;
    const digest = nodeCrypto().createHash('sha256').update(place.name).digest('hex');
    this.#channel = `toolwright_${digest.slice(0, 32)}`;
  }

  async publish(word: BossWord): Promise<void> {
    await this.#queue.ready();
    const id = nodeCrypto().randomUUID();
    const text = asciiJson(word);
    const count = Math.ceil(text.length / PART_LENGTH);
    const parts = Array.from({ length: count }, (_, index) => {
      const part = text.slice(index * PART_LENGTH, (index + 1) * PART_LENGTH);
      return `${id}/${index}/${count}/${part}`;
    });
    // One statement is one transaction, whose notifications arrive together and in order.
    await this.#queue.database.executeSql('SELECT pg_notify($1, part) FROM unnest($2::text[]) AS part', [
      this.#channel,
      parts,
    ]);
  }

  /** Tells workers that there is something to do, once for all that is enqueued in a moment. */
  wake(): void {
    this.#isCalled = true;
    this.#waking ??= this.#wakeAll().finally(() => {
      this.#waking = undefined;
    });
  }

  async #wakeAll(): Promise<void> {
    while (this.#isCalled) {
      this.#isCalled = false;
      await this.publish({ type: 'wake' }).catch(this.#onError);
    }
  }

  async subscribe(hear: Listener): Promise<() => Promise<void>> {
    const subscription = { hear };
    this.#listeners.add(subscription);
    this.#listening ??= this.#listen();
    try {
      await this.#listening;
    } catch (error) {
      this.#listeners.delete(subscription);
      this.#listening = undefined;
      throw error;
    }
    return async () => void this.#listeners.delete(subscription);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#waking;
    const handle = await this.#listening?.catch(() => undefined);
    await handle?.close();
  }

  async #listen(): Promise<ListenHandle> {
    await this.#queue.ready();
    const { database } = this.#queue;
    if (database.listen === undefined)
      throw new Error('The database of this pg-boss cannot LISTEN; let pg-boss have a pool of its own.');
    return database.listen(
      this.#channel,
      (payload) => this.#hear(payload),
      () => this.#tell({ type: 'wake' }),
    );
  }

  /** Notifications of one transaction come one after the other: what is not whole by then, a lost connection cut. */
  #hear(payload: string): void {
    const [, id = '', index = '0', count = '1', part = ''] =
      /^([^/]*)\/(\d+)\/(\d+)\/(.*)$/s.exec(payload) ?? [];
    const { parts } = this.#arriving?.id === id ? this.#arriving : { parts: [] };
    parts[Number(index)] = part;
    const isWhole = parts.filter((given) => given !== undefined).length === Number(count);
    this.#arriving = isWhole ? undefined : { id, parts };
    if (isWhole) this.#tell(JSON.parse(parts.join('')) as BossWord);
  }

  #tell(word: BossWord): void {
    for (const { hear } of [...this.#listeners]) callListener(() => hear(word), this.#onError);
  }
}

/** As many bytes as characters, and none that a text of PostgreSQL cannot have. */
function asciiJson(word: BossWord): string {
  return JSON.stringify(word).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
