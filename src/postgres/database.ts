import { setTimeout as delay } from 'node:timers/promises';
import type { ConversationNews } from '../contract/conversation-log.js';
import type { SqlTransaction } from '../contract/job-engine.js';
import { checkOptions, refuseOptions } from '../errors/author-fault.js';
import {
  MILLISECONDS,
  type OptionRule,
  type OptionTable,
  PAUSE,
  type RulesOf,
  withMethods,
} from '../kernel/options.js';
import { placeIn, serverAddress } from '../kernel/server-address.js';
import {
  type Dialect,
  type Locks,
  type Outcome,
  type RunStatement,
  type SqlDriver,
  type Statement,
  type Transaction,
  writeStep,
} from '../sql/driver.js';
import { Listener } from './listener.js';
import { checkTables, migrate } from './migrations.js';
import {
  connectionOf,
  isConnectionLost,
  mayHaveExecuted,
  openPool,
  type PostgresClient,
  type PostgresPool,
  withPlace,
} from './pool.js';

/** Where the stores of `toolwright/postgres` keep what they are given: `pool` or `connectionString`. */
export interface PostgresOptions {
  /** A `Pool` of `pg`, which stays the application's: nobody here ends it, and its own timeouts hold. */
  readonly pool?: PostgresPool;
  /** `postgres://user:password@host:5432/database`: the store has a pool of its own and ends it with `close`. */
  readonly connectionString?: string;
  /** The schema of all tables; it is made where it is missing. Default: `toolwright`. */
  readonly schema?: string;
  /** Milliseconds until a statement is given up; default: 10,000. */
  readonly statementTimeoutMs?: number;
  /** Milliseconds for which a method tries again while there is no connection; default: 5,000. */
  readonly reconnectMs?: number;
}

/** Short enough for a statement's name, and the same with and without quotes. */
const SCHEMA: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,39}$/.test(value),
  fix: "'toolwright': up to 40 small letters, digits and underscores",
};

/** What each of them may be. */
export const POSTGRES_RULES: RulesOf<PostgresOptions> = {
  pool: withMethods(['query', 'connect'], 'new pg.Pool({ … })'),
  connectionString: serverAddress('postgres', "'postgres://user@host:5432/database'"),
  schema: SCHEMA,
  statementTimeoutMs: MILLISECONDS,
  reconnectMs: PAUSE,
};

/**
 * Checks the options of a store.
 *
 * @throws InvalidOptionsError (521) naming everything that is wrong.
 */
export function checkPostgresOptions(given: PostgresOptions, table: OptionTable): void {
  checkOptions(given, table);
  if ((given.pool === undefined) !== (given.connectionString === undefined)) return;
  const problem =
    given.pool === undefined
      ? 'neither pool nor connectionString is given'
      : 'pool and connectionString are both given';
  const fix = "pool: new pg.Pool({ … }), or connectionString: 'postgres://user@host:5432/database'";
  refuseOptions([{ where: table.of, option: 'pool', problem, fix }]);
}

/** By the server's clock, which is the same for all processes. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** Who needs a lock waits for those who have it, and for nobody else. */
const LOCK = 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))';

/** How long the time-outs of the server may be in coming. */
const LATE_MS = 5_000;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

/** A database with our tables in it: it migrates them before they are first used, and outlives lost connections. */
export class Database implements SqlDriver {
  readonly #schema: string;
  readonly #texts = new Map<string, string>();
  readonly #listener: Listener;
  readonly #pool: PostgresPool;
  readonly #ownPool: ReturnType<typeof openPool> | undefined;
  readonly #place: string | undefined;
  readonly #timeoutMs: number;
  readonly #reconnectMs: number;
  #ready: Promise<void> | undefined;

  constructor(options: PostgresOptions) {
    const { pool, connectionString, schema = 'toolwright' } = options;
    const { statementTimeoutMs = 10_000, reconnectMs = 5_000 } = options;
    this.#schema = schema;
    this.#listener = new Listener(this, this.#channel);
    this.#timeoutMs = statementTimeoutMs;
    this.#reconnectMs = reconnectMs;
    this.#ownPool = pool === undefined ? openPool(connectionString, statementTimeoutMs) : undefined;
    this.#pool = pool ?? (this.#ownPool as PostgresPool);
    this.#place = connectionString === undefined ? undefined : placeIn(connectionString);
  }

  /** Brings the tables up to date, once; another process may do so at the same time. */
  migrate(): Promise<void> {
    this.#ready ??= this.#insist(() => migrate(this.#pool, this.#schema)).then(
      () => {},
      (error: unknown) => {
        this.#ready = undefined;
        throw error;
      },
    );
    return this.#ready;
  }

  /**
   * Whether the tables are those of this version; makes and changes nothing.
   *
   * @throws Error that says what to do where they are not.
   */
  check(): Promise<void> {
    return this.#insist(() => checkTables(this.#pool, this.#schema));
  }

  /** Sent again where the connection was lost. */
  readonly run: RunStatement = async (statement, values) => {
    await this.migrate();
    return this.#insist(async (isRepeated) => ({
      ...(await this.#send(this.#pool, statement, values)),
      isRepeated,
    }));
  };

  async runIn(
    transaction: SqlTransaction,
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Pick<Outcome, 'rows'>> {
    await this.migrate();
    return (await transaction.query(this.#textOf(statement), values)) as Pick<Outcome, 'rows'>;
  }

  /** Begun again where the connection was lost. */
  async transaction<Value>({ of, names }: Locks, work: () => Transaction<Value>): Promise<Value> {
    await this.migrate();
    return this.#insist(async () => {
      const client = await connectionOf(this.#pool);
      let isBroken = true;
      try {
        await client.query({ text: 'BEGIN' });
        // In one order everywhere, so that no two wait for each other.
        for (const name of [...new Set(names)].sort())
          await client.query({ text: LOCK, values: [`toolwright ${of} ${this.#schema} ${name}`] });
        const begun = work();
        let step = begun.next();
        while (!step.done) step = begun.next(await this.#send(client, ...step.value));
        await client.query({ text: 'COMMIT' });
        isBroken = false;
        return step.value;
      } finally {
        // A connection whose transaction did not end well is not used again.
        client.release(isBroken);
      }
    });
  }

  watch(listener: (news: ConversationNews) => void): () => void {
    return this.#listener.add({
      hear: (payload) => {
        const space = payload.indexOf(' ');
        const about = payload.slice(0, space) as 'inbox' | 'events';
        listener({ conversationId: payload.slice(space + 1), about });
      },
      miss: () => listener({ about: 'missed' }),
    });
  }

  /** A connection for as long as somebody needs it. */
  async connect(): Promise<PostgresClient> {
    await this.migrate();
    try {
      return await connectionOf(this.#pool);
    } catch (error) {
      throw withPlace(error, this.#place);
    }
  }

  /** Ends the pool, unless it is the application's, and tells nobody any more. */
  async close(): Promise<void> {
    await this.#listener.close();
    if (this.#ownPool !== undefined && !this.#ownPool.ending) await this.#ownPool.end();
  }

  /** Ends the connections of a pool of its own: all that is asked rejects. */
  cut(): void {
    this.#ownPool?.cut();
  }

  async #send(
    connection: Pick<PostgresPool, 'query'>,
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Outcome> {
    const limit =
      this.#timeoutMs === Number.POSITIVE_INFINITY ? {} : { query_timeout: this.#timeoutMs + LATE_MS };
    // The server keeps it for the connection, which several schemas may share.
    const name = `${this.#schema}.${statement.name}`;
    const text = this.#textOf(statement);
    const { rows, rowCount } = await connection.query({ name, text, values: [...values], ...limit });
    return { rows, count: rowCount ?? 0, isRepeated: false };
  }

  /** Steps are parts of one statement, in one round trip. */
  #textOf({ name, steps, tells }: Statement): string {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const dialect: Dialect = {
      table: (table) => `${this.#schema}.${table}`,
      now: NOW,
      nowOnce: `(SELECT ${NOW})`,
      version: 'xmin::text',
      each: (list) => `unnest(${list}::text[]) WITH ORDINALITY AS each (value, place)`,
      step: (step, column) =>
        column === undefined ? `EXISTS (SELECT 1 FROM ${step})` : `(SELECT ${column} FROM ${step})`,
    };
    const written = Object.entries(steps).map(([step, text]) => [step, writeStep(text, dialect)] as const);
    const [[first, only] = ['', '']] = written;
    const parts = written.map(([step, text]) => `${step} AS (${text})`);
    if (tells !== undefined) {
      const told = `pg_notify('${this.#channel}', '${tells.about} ' || $${tells.value})`;
      parts.push(`told AS (SELECT ${told} WHERE ${dialect.step(tells.once)})`);
    }
    const isCalled = tells === undefined ? '' : ', (SELECT count(*) FROM told)';
    const text =
      parts.length === 1 ? only : `WITH ${parts.join(', ')} SELECT ${first}.*${isCalled} FROM ${first}`;
    this.#texts.set(name, text);
    return text;
  }

  /** On which news of the conversations are told to all processes. */
  get #channel(): string {
    return `${this.#schema}.fleet_conversations`;
  }

  async #insist<Value>(work: (isRepeated: boolean) => Promise<Value>): Promise<Value> {
    const end = performance.now() + this.#reconnectMs;
    let pauseMs = FIRST_PAUSE_MS;
    for (let isRepeated = false; ; ) {
      try {
        return await work(isRepeated);
      } catch (error) {
        isRepeated ||= mayHaveExecuted(error);
        if (!isConnectionLost(error) || performance.now() + pauseMs > end)
          throw withPlace(error, this.#place);
      }
      await delay(pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }
}
