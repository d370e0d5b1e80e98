import type {
  ConversationStore,
  ConversationTurn,
  StoredConversation,
  StoredMessage,
} from '../../core/contract/conversation-store.js';
import type { FinishReason } from '../../core/contract/llm-provider.js';
import { MILLISECONDS, optionTable } from '../../core/kernel/options.js';
import { statements, writtenRow } from '../sql/driver.js';
import { checkPostgresOptions, Database, POSTGRES_RULES, type PostgresOptions } from './database.js';

/** Options of a {@link PostgresConversationStore}. */
export interface PostgresConversationStoreOptions extends PostgresOptions {
  /** Milliseconds after its last turn until a conversation expires (default: a day); `Infinity`: never. */
  readonly expiresAfterMs?: number;
}

const OPTIONS = optionTable<PostgresConversationStoreOptions>('PostgresConversationStore', {
  ...POSTGRES_RULES,
  expiresAfterMs: MILLISECONDS,
});

const DAY = 86_400_000;

const ADD_TURN = `
  INSERT INTO :conversation_turns (conversation_id, turn_id, messages) SELECT id, $2, $4 FROM done RETURNING seq`;

/** `$1` is the conversation, `$2` the turn. */
const SQL = statements('chat', {
  load: `
    SELECT turn_id, finish_reason, owner, (
      SELECT string_agg(messages, ',' ORDER BY seq) FROM :conversation_turns WHERE conversation_id = $1
    ) AS messages
    FROM :conversations WHERE id = $1 AND used_at > {now} - $2`,
  // Removes a few expired conversations per new one, and more than it adds.
  drop_expired: `
    DELETE FROM :conversations WHERE id = ANY(ARRAY(
      SELECT id FROM :conversations WHERE used_at <= {at} - $2
      ORDER BY used_at LIMIT 10 FOR UPDATE SKIP LOCKED
    )) OR (id = $1 AND used_at <= {now} - $2)`,
  begin: `
    WITH done AS (
      INSERT INTO :conversations (id, turn_id, finish_reason, owner, used_at) VALUES ($1, $2, $3, $5, {now})
      ON CONFLICT DO NOTHING RETURNING id
    ) ${ADD_TURN}`,
  add: `
    WITH done AS (
      UPDATE :conversations SET turn_id = $2, finish_reason = $3, used_at = {now}
      WHERE id = $1 AND turn_id = $5 AND used_at > {now} - $6 RETURNING id
    ) ${ADD_TURN}`,
  has_turn: 'SELECT seq FROM :conversation_turns WHERE conversation_id = $1 AND turn_id = $2',
});

/**
 * Stores the conversations of assistants in PostgreSQL, for any number of processes and machines. A turn is one
 * statement. Conversations expire by the server's clock; their number is not limited.
 *
 * @example
 * ```ts
 * const store = new PostgresConversationStore({ connectionString: 'postgres://app@127.0.0.1:5432/shop' });
 * const handler = createAssistantHandler({ provider, model, store });
 * ```
 */
export class PostgresConversationStore implements ConversationStore, AsyncDisposable {
  readonly #database: Database;
  readonly #expiresAfterMs: number;

  /** @throws InvalidOptionsError (521) for wrong options. Connection errors reject the first method. */
  constructor(options: PostgresConversationStoreOptions) {
    checkPostgresOptions(options, OPTIONS);
    const { expiresAfterMs = DAY, ...place } = options;
    this.#database = new Database(place);
    this.#expiresAfterMs = Math.ceil(Math.min(expiresAfterMs, Number.MAX_SAFE_INTEGER));
  }

  /**
   * Creates the tables or brings them up to date. Safe when several processes do so at the same time.
   *
   * @throws Error for tables that a newer version of this package made; the error of `pg` if it lacks the rights.
   */
  migrate(): Promise<void> {
    return this.#database.migrate();
  }

  async load(conversationId: string): Promise<StoredConversation | undefined> {
    const { rows } = await this.#database.run(SQL.load, [conversationId, this.#expiresAfterMs]);
    const [row] = rows;
    if (row === undefined) return undefined;
    const turns: StoredMessage[][] = JSON.parse(`[${row.messages}]`);
    return {
      turnId: String(row.turn_id),
      ...(row.owner !== null && { owner: JSON.parse(String(row.owner)) }),
      messages: turns.flat(),
      finishReason: row.finish_reason as FinishReason,
    };
  }

  async append(conversationId: string, turn: ConversationTurn): Promise<boolean> {
    const { id, after, finishReason, messages, owner } = turn;
    const age = this.#expiresAfterMs;
    const values = [conversationId, id, finishReason, JSON.stringify(messages)];
    if (after === undefined) await this.#database.run(SQL.drop_expired, [conversationId, age]);
    const written = await (after === undefined
      ? this.#database.run(SQL.begin, [...values, owner === undefined ? null : JSON.stringify(owner)])
      : this.#database.run(SQL.add, [...values, after, age]));
    const check = () => this.#database.run(SQL.has_turn, [conversationId, id]);
    return (await writtenRow(written, check)) !== undefined;
  }

  /** Ends the store's own pool. A pool of the application stays open. */
  close(): Promise<void> {
    return this.#database.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
