import type { SqlTransaction } from '../../core/contract/job-engine.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { closeWithin } from '../../core/kernel/async.js';
import { optionTable, PAUSE } from '../../core/kernel/options.js';
import { statements } from '../sql/driver.js';
import { sqlJobs } from '../sql/jobs.js';
import { SqlRunStore } from '../sql/run-store.js';
import { checkPostgresOptions, Database, POSTGRES_RULES, type PostgresOptions } from './database.js';

const OPTIONS = optionTable<PostgresOptions>('PostgresRunStore', POSTGRES_RULES);

/** Options of {@link PostgresRunStore.close}. */
export interface PostgresCloseOptions {
  /** Milliseconds after which the connections are cut. Default: `close` waits for all statements. */
  readonly timeoutMs?: number;
}

const CLOSE_OPTIONS = optionTable<PostgresCloseOptions>('PostgresRunStore.close', { timeoutMs: PAUSE });

/**
 * Stores runs in PostgreSQL (13 or newer), for any number of processes and machines. Leases end by the server's clock.
 * The tables are created and brought up to date on first use, or by `migrate`.
 *
 * Without a connection, methods retry for `reconnectMs`. A statement may be sent twice, but takes effect once. Other
 * errors are those of `pg`.
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

  /** @throws InvalidOptionsError (521) for wrong options. Connection errors reject the first method. */
  constructor(options: PostgresOptions) {
    checkPostgresOptions(options, OPTIONS);
    const database = new Database(options);
    super(database, { jobs: { ...sqlJobs(database), isKeptIn: (given) => isKeptIn(database, given) } });
    this.#database = database;
  }

  /**
   * Creates the tables or brings them up to date. Safe when several processes do so at the same time.
   *
   * @throws Error for tables that a newer version of this package made; the error of `pg` if it lacks the rights.
   */
  migrate(): Promise<void> {
    return this.#database.migrate();
  }

  /**
   * Ends the store's own pool; a pool of the application stays open. All other methods throw afterwards. With
   * `timeoutMs`, connections that are then still in use are cut.
   */
  async close(options: PostgresCloseOptions = {}): Promise<void> {
    checkOptions(options, CLOSE_OPTIONS);
    await closeWithin(this.#database.close(), options, () => this.#database.cut());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Identifies the database server, whatever address was used to connect. */
const PLACE = `
  SELECT concat(system_identifier, ' ', oid) AS place FROM pg_control_system(), pg_database
  WHERE datname = current_database()`;

const SQL = statements('job', { place: PLACE });

/** The code of `insufficient_privilege`. */
const NOT_ALLOWED = '42501';

/** Whether a transaction of the application is one of this database: its jobs can then be completed in it. */
async function isKeptIn(database: Database, given: SqlTransaction): Promise<boolean> {
  try {
    const [own, other] = await Promise.all([database.run(SQL.place, []), given.query(PLACE)]);
    return own.rows[0]?.place === (other.rows[0] as { readonly place?: unknown } | undefined)?.place;
  } catch (error) {
    // The role may not read this; if the databases differ, the first commit fails and reports it.
    if ((error as { readonly code?: unknown }).code === NOT_ALLOWED) return true;
    throw error;
  }
}
