import { setTimeout as delay } from 'node:timers/promises';
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
import { checkTables, migrate } from './migrations.js';
import {
  connectionOf,
  isConnectionLost,
  mayHaveExecuted,
  openPool,
  type PostgresClient,
  type PostgresPool,
  type PostgresRows,
  withPlace,
} from './pool.js';
import type { Statement } from './statements.js';

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

/** What became of a statement. */
export interface Outcome extends PostgresRows {
  /** It was sent more than once: one before may have been carried out although its answer was lost. */
  readonly isRepeated: boolean;
}

/** How long the time-outs of the server may be in coming. */
const LATE_MS = 5_000;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

/** A database with our tables in it: it migrates them before they are first used, and outlives lost connections. */
export class Database {
  readonly schema: string;
  readonly #pool: PostgresPool;
  readonly #ownPool: ReturnType<typeof openPool> | undefined;
  readonly #place: string | undefined;
  readonly #timeoutMs: number;
  readonly #reconnectMs: number;
  #ready: Promise<void> | undefined;

  constructor(options: PostgresOptions) {
    const { pool, connectionString, schema = 'toolwright' } = options;
    const { statementTimeoutMs = 10_000, reconnectMs = 5_000 } = options;
    this.schema = schema;
    this.#timeoutMs = statementTimeoutMs;
    this.#reconnectMs = reconnectMs;
    this.#ownPool = pool === undefined ? openPool(connectionString, statementTimeoutMs) : undefined;
    this.#pool = pool ?? (this.#ownPool as PostgresPool);
    this.#place = connectionString === undefined ? undefined : placeIn(connectionString);
  }

  /** Brings the tables up to date, once; another process may do so at the same time. */
  migrate(): Promise<void> {
    this.#ready ??= this.#insist(() => migrate(this.#pool, this.schema)).then(
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
    return this.#insist(() => checkTables(this.#pool, this.schema));
  }

  /**
   * Carries a statement out. It is sent again where the connection was lost, so that it has to be one that may be
   * carried out twice.
   */
  async run(statement: Statement, valuesFor: (isRepeated: boolean) => unknown[]): Promise<Outcome> {
    await this.migrate();
    return this.#insist(async (isRepeated) => {
      const values = valuesFor(isRepeated);
      const limit =
        this.#timeoutMs === Number.POSITIVE_INFINITY ? {} : { query_timeout: this.#timeoutMs + LATE_MS };
      const { rows, rowCount } = await this.#pool.query({ ...statement, values, ...limit });
      return { rows, rowCount, isRepeated };
    });
  }

  /** Carries several statements out as one; again where the connection was lost, so that they must bear that. */
  async transact<Value>(work: (client: PostgresClient) => Promise<Value>): Promise<Value> {
    await this.migrate();
    return this.#insist(async () => {
      const client = await connectionOf(this.#pool);
      let isBroken = true;
      try {
        await client.query({ text: 'BEGIN' });
        const value = await work(client);
        await client.query({ text: 'COMMIT' });
        isBroken = false;
        return value;
      } finally {
        // A connection whose transaction did not end well is not used again.
        client.release(isBroken);
      }
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

  /** Ends the pool, unless it is the application's. */
  async close(): Promise<void> {
    if (this.#ownPool !== undefined && !this.#ownPool.ending) await this.#ownPool.end();
  }

  /** Ends the connections of a pool of its own: all that is asked rejects. */
  cut(): void {
    this.#ownPool?.cut();
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
