import type { DatabaseSync } from 'node:sqlite';
import type {
  ConversationStore,
  ConversationTurn,
  StoredConversation,
  StoredMessage,
} from '../../../core/contract/conversation-store.js';
import type { FinishReason } from '../../../core/contract/llm-provider.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { forgetOldest } from '../../../core/kernel/forget-oldest.js';
import { withoutUndefined } from '../../../core/kernel/json.js';
import {
  COUNT_LIMIT,
  FUNCTION,
  MILLISECONDS,
  optionTable,
  type RulesOf,
} from '../../../core/kernel/options.js';
import { DATABASE_PATH, inTransaction, openDatabase } from '../../../durable/stores/open-database.js';

/** Limits of a conversation store. */
export interface StoreLimits {
  /** The most conversations. A new one replaces the least recently used. Default: 10,000. */
  readonly maxConversations?: number;
  /** Milliseconds after its last turn until a conversation expires (default: a day); `Infinity`: never. */
  readonly expiresAfterMs?: number;
  /** The clock, in milliseconds; default: `Date.now`. */
  readonly now?: () => number;
}

const STORE_LIMIT_RULES: RulesOf<StoreLimits> = {
  maxConversations: COUNT_LIMIT,
  expiresAfterMs: MILLISECONDS,
  now: FUNCTION,
};

function storeLimits(limits: StoreLimits): Required<StoreLimits> {
  const { maxConversations = 10_000, expiresAfterMs = 86_400_000, now = Date.now } = limits;
  return { maxConversations, expiresAfterMs, now };
}

const MEMORY_OPTIONS = optionTable<StoreLimits>('MemoryConversationStore', STORE_LIMIT_RULES);

type Entry = StoredConversation & { readonly usedAt: number };

/**
 * Stores conversations in the memory of this process; a restart clears them.
 *
 * @example
 * ```ts
 * const store = new MemoryConversationStore({ maxConversations: 500, expiresAfterMs: 3_600_000 });
 * const handler = createAssistantHandler({ provider, model, store });
 * ```
 */
export class MemoryConversationStore implements ConversationStore {
  readonly #limits: Required<StoreLimits>;
  /** In the order of their last turns. */
  readonly #entries = new Map<string, Entry>();

  /** @throws InvalidOptionsError (521) for a limit that is not a number. */
  constructor(limits: StoreLimits = {}) {
    checkOptions(limits, MEMORY_OPTIONS);
    this.#limits = storeLimits(limits);
  }

  async load(conversationId: string): Promise<StoredConversation | undefined> {
    return this.#find(conversationId);
  }

  async append(conversationId: string, turn: ConversationTurn): Promise<boolean> {
    for (const [id, entry] of this.#entries) {
      // Later entries were used more recently, unless the clock was set back; `#find` checks again.
      if (!this.#hasExpired(entry)) break;
      this.#entries.delete(id);
    }
    const before = this.#find(conversationId);
    if (before?.turnId !== turn.after) return false;
    const { owner } = before ?? turn;
    this.#entries.delete(conversationId);
    const entry = {
      owner,
      turnId: turn.id,
      messages: [...(before?.messages ?? []), ...turn.messages],
      finishReason: turn.finishReason,
      usedAt: this.#limits.now(),
    };
    this.#entries.set(conversationId, withoutUndefined(entry));
    forgetOldest(this.#entries, this.#limits.maxConversations);
    return true;
  }

  #find(conversationId: string): Entry | undefined {
    const entry = this.#entries.get(conversationId);
    return entry !== undefined && this.#hasExpired(entry) ? undefined : entry;
  }

  #hasExpired({ usedAt }: Entry): boolean {
    return usedAt <= this.#limits.now() - this.#limits.expiresAfterMs;
  }
}

/** Options of a {@link SqliteConversationStore}. */
export interface SqliteConversationStoreOptions extends StoreLimits {
  /** Path of the database; its folder must exist. `:memory:` stores it in memory. */
  readonly path: string;
}

const SQLITE_OPTIONS = optionTable<SqliteConversationStoreOptions>('SqliteConversationStore', {
  ...STORE_LIMIT_RULES,
  path: DATABASE_PATH,
});

const VERSION = 3;

const BUSY_TIMEOUT_MS = 5000;

const SCHEMA = `
  CREATE TABLE turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    turn_id TEXT NOT NULL,
    messages TEXT NOT NULL,
    finish_reason TEXT NOT NULL,
    extras TEXT
  ) STRICT;
  CREATE INDEX turns_of_conversation ON turns (conversation_id, seq);
  CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    used_at REAL NOT NULL,
    owner TEXT
  ) STRICT;
  CREATE INDEX conversations_by_use ON conversations (last_seq);
`;

const ADD_OWNERS = 'ALTER TABLE conversations ADD COLUMN owner TEXT';
/** A separate column, so that older versions that have the file open still work and ignore the new data. */
const ADD_EXTRAS = 'ALTER TABLE turns ADD COLUMN extras TEXT';

type TurnRow = {
  readonly turn_id: string;
  readonly messages: string;
  readonly finish_reason: FinishReason;
  /** The reply's data besides its text, as JSON. */
  readonly extras: string | null;
  /** The owner of the conversation. */
  readonly owner: string | null;
};

/**
 * Stores conversations in a file, with Node's SQLite. They survive the process, even if it is killed, and several
 * processes may share the file. A turn is one transaction.
 *
 * @example
 * ```ts
 * using store = new SqliteConversationStore({ path: 'conversations.sqlite' });
 * const handler = createAssistantHandler({ provider, model, store });
 * ```
 */
export class SqliteConversationStore implements ConversationStore, Disposable {
  readonly #limits: Required<StoreLimits>;
  readonly #database: DatabaseSync;
  #isOpen = true;

  /**
   * @throws InvalidOptionsError (521) for a limit that is not a number or a wrong path; an Error if the file is locked
   * or was written by a newer version.
   */
  constructor(options: SqliteConversationStoreOptions) {
    checkOptions(options, SQLITE_OPTIONS);
    const { path, ...limits } = options;
    this.#limits = storeLimits(limits);
    this.#database = openDatabase({ of: 'SqliteConversationStore', path, busyTimeoutMs: BUSY_TIMEOUT_MS });
    try {
      this.#database.exec('PRAGMA foreign_keys = ON');
      inTransaction(this.#database, () => {
        const { user_version: version } = this.#database.prepare('PRAGMA user_version').get() as {
          readonly user_version: number;
        };
        if (version > VERSION) throw new Error(`the conversations are of a newer version (${version})`);
        if (version === 0) this.#database.exec(SCHEMA);
        if (version === 1) this.#database.exec(ADD_OWNERS);
        if (version === 1 || version === 2) this.#database.exec(ADD_EXTRAS);
        if (version < VERSION) this.#database.exec(`PRAGMA user_version = ${VERSION}`);
      });
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  async load(conversationId: string): Promise<StoredConversation | undefined> {
    const rows = this.#database
      .prepare(
        `SELECT turn_id, messages, finish_reason, extras, owner FROM turns
         JOIN conversations ON conversations.id = conversation_id AND used_at > ?
         WHERE conversation_id = ? ORDER BY seq`,
      )
      .all(this.#expiry(), conversationId) as TurnRow[];
    const last = rows.at(-1);
    if (last === undefined) return undefined;
    return withoutUndefined<StoredConversation>({
      turnId: last.turn_id,
      owner: last.owner === null ? undefined : JSON.parse(last.owner),
      messages: rows.flatMap(messagesOf),
      finishReason: last.finish_reason,
    });
  }

  async append(conversationId: string, turn: ConversationTurn): Promise<boolean> {
    return inTransaction(this.#database, () => {
      const { now, maxConversations } = this.#limits;
      this.#run('DELETE FROM conversations WHERE used_at <= ?', this.#expiry());
      const last = this.#database
        .prepare('SELECT turn_id FROM turns WHERE conversation_id = ? ORDER BY seq DESC LIMIT 1')
        .get(conversationId) as Pick<TurnRow, 'turn_id'> | undefined;
      if (last?.turn_id !== turn.after) return false;
      const owner = turn.owner === undefined ? null : JSON.stringify(turn.owner);
      this.#run(
        'INSERT OR IGNORE INTO conversations (id, last_seq, used_at, owner) VALUES (?, 0, ?, ?)',
        conversationId,
        now(),
        owner,
      );
      const messages = turn.messages.map(({ role, content }) => ({ role, content }));
      // Only replies have extras, and a turn ends with its reply.
      const { reasoning, providerItems } = turn.messages.at(-1) ?? {};
      const extras = JSON.stringify({ reasoning, providerItems });
      const seq = this.#run(
        'INSERT INTO turns (conversation_id, turn_id, messages, finish_reason, extras) VALUES (?, ?, ?, ?, ?)',
        conversationId,
        turn.id,
        JSON.stringify(messages),
        turn.finishReason,
        extras === '{}' ? null : extras,
      );
      this.#run(
        'UPDATE conversations SET last_seq = ?, used_at = ? WHERE id = ?',
        seq,
        now(),
        conversationId,
      );
      if (turn.after !== undefined) return true;
      const { count } = this.#database.prepare('SELECT count(*) AS count FROM conversations').get() as {
        readonly count: number;
      };
      const oldest = 'SELECT id FROM conversations ORDER BY last_seq LIMIT ?';
      if (count > maxConversations)
        this.#run(`DELETE FROM conversations WHERE id IN (${oldest})`, count - maxConversations);
      return true;
    });
  }

  /** Closes the file; the store cannot be used afterwards. */
  close(): void {
    if (this.#isOpen) this.#database.close();
    this.#isOpen = false;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Conversations that were last used at this time or earlier have expired. */
  #expiry(): number {
    return this.#limits.now() - this.#limits.expiresAfterMs;
  }

  /** Returns the id of the inserted row, if it was an insert. */
  #run(sql: string, ...values: readonly (string | number | null)[]): number {
    return Number(this.#database.prepare(sql).run(...values).lastInsertRowid);
  }
}

function messagesOf({ messages, extras }: TurnRow): readonly StoredMessage[] {
  const plain: StoredMessage[] = JSON.parse(messages);
  const last = plain.at(-1);
  if (extras === null || last === undefined) return plain;
  return [...plain.slice(0, -1), { ...last, ...JSON.parse(extras) }];
}
