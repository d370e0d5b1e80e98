import type { SqlTransaction } from '../../core/contract/job-engine.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { closeWithin } from '../../core/kernel/async.js';
import { optionTable, PAUSE } from '../../core/kernel/options.js';
import { statements } from '../sql/driver.js';
import { SqlJobs } from '../sql/jobs.js';
import { SqlRunStore } from '../sql/run-store.js';
import { checkPostgresOptions, Database, POSTGRES_RULES, type PostgresOptions } from './database.js';

const OPTIONS = optionTable<PostgresOptions>('PostgresRunStore', POSTGRES_RULES);

/** How a {@link PostgresRunStore} is closed. */
export interface PostgresCloseOptions {
  /** Milliseconds after which its connections are cut. Default: as long as its statements take. */
  readonly timeoutMs?: number;
}

const CLOSE_OPTIONS = optionTable<PostgresCloseOptions>('PostgresRunStore.close', { timeoutMs: PAUSE });

/**
 * Keeps runs in PostgreSQL (13 or newer), for any number of processes on any number of machines. Leases end by the
 * server's clock. Its tables are made and brought up to date before it is first used, or by `migrate`.
 *
 * While there is no connection, methods try again for `reconnectMs`; each may be sent twice and takes effect once. What
 * else the server refuses is thrown as `pg` throws it.
 *
 * @example
 * ```ts
 * const store = new PostgresRunStore({ connectionString: 'postgres://app@127.0.0.1:5432/shop' });
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * await store.close();
 * ```
 */
export class PostgresRunStore extends SqlRunStore implements AsyncDisposable {
  readonly #database: Database;

  /** @throws InvalidOptionsError (521) for wrong options. It connects later. */
  constructor(options: PostgresOptions) {
    checkPostgresOptions(options, OPTIONS);
    const database = new Database(options);
    super(database, { jobs: new PostgresJobs(database) });
    this.#database = database;
  }

  /**
   * Makes the tables, or brings them up to date. Several processes may do so at once.
   *
   * @throws Error for tables that a newer version of this package made; what `pg` throws where it may not make them.
   */
  migrate(): Promise<void> {
    return this.#database.migrate();
  }

  /**
   * Closes the connections, unless they are of a pool of the application. Any other method throws afterwards. With
   * `timeoutMs`, connections that are still in use then are cut, whatever they do.
   */
  async close(options: PostgresCloseOptions = {}): Promise<void> {
    checkOptions(options, CLOSE_OPTIONS);
    await closeWithin(this.#database.close(), options, () => this.#database.cut());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** By whatever name a database is reached. */
const PLACE = `
  SELECT concat(system_identifier, ' ', oid) AS place FROM pg_control_system(), pg_database
  WHERE datname = current_database()`;

const SQL = statements('job', { place: PLACE });

/** The code of `insufficient_privilege`. */
const NOT_ALLOWED = '42501';

/** Jobs that can be completed in transactions of the application. */
class PostgresJobs extends SqlJobs {
  readonly #database: Database;

  constructor(database: Database) {
    super(database);
    this.#database = database;
  }

  async isKeptIn(given: SqlTransaction): Promise<boolean> {
    try {
      const [own, other] = await Promise.all([this.#database.run(SQL.place, []), given.query(PLACE)]);
      return own.rows[0]?.place === (other.rows[0] as { readonly place?: unknown } | undefined)?.place;
    } catch (error) {
      // The first commit that fails reports a role without that right.
      if ((error as { readonly code?: unknown }).code === NOT_ALLOWED) return true;
      throw error;
    }
  }
}
