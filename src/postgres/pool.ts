import pg from 'pg';
import { errorMessage } from '../kernel/error-message.js';
import { OwnConnections } from '../kernel/own-connections.js';

/** What the stores ask of `pg`'s `Pool`. */
export interface PostgresPool {
  query(query: PostgresQuery): Promise<PostgresRows>;
  connect(): Promise<PostgresClient>;
}

/** A pool of a store's own: what is asked of `pg`'s, whose types a user of other stores does not have. */
interface OwnPool extends PostgresPool {
  readonly ending: boolean;
  end(): Promise<void>;
  /** Ends its connections, whatever they do. */
  cut(): void;
}

/** One connection of a pool. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<PostgresRows>;
  /** Hears what is told over channels (`LISTEN`), and of the loss of the connection. */
  on(event: 'notification', listener: (told: PostgresNotification) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Gives the connection back, or closes it where it is of no more use. */
  release(isBroken?: boolean): void;
}

/** What was told over a channel. */
interface PostgresNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** A statement with its values, as `pg` takes it. */
export interface PostgresQuery {
  readonly text: string;
  /** Under which the server keeps the statement for the connection. */
  readonly name?: string;
  readonly values?: unknown[];
  /** Milliseconds until the client gives the answer up. */
  readonly query_timeout?: number;
}

/** What a statement gives. */
export interface PostgresRows {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly rowCount: number | null;
}

const LONGEST_CONNECT_MS = 10_000;

/** A pool of a store's own. */
export function openPool(connectionString: string | undefined, statementTimeoutMs: number): OwnPool {
  const connections = new OwnConnections();
  const pool = new pg.Pool({
    stream: connections.stream,
    connectionString,
    statement_timeout: statementTimeoutMs === Number.POSITIVE_INFINITY ? 0 : Math.ceil(statementTimeoutMs),
    connectionTimeoutMillis: Math.min(statementTimeoutMs, LONGEST_CONNECT_MS),
    keepAlive: true,
    application_name: 'toolwright',
    // A store that nobody closes does not keep the process alive.
    allowExitOnIdle: true,
  });
  // A connection that is lost while nobody uses it; the next statement gets another.
  pool.on('error', () => {});
  return Object.assign(pool, { cut: () => connections.cut() }) as unknown as OwnPool;
}

const heardClients = new WeakSet<PostgresClient>();
const heardPools = new WeakSet<PostgresPool>();

/** A connection of one's own. Its loss is told by its statements: nobody else hears of it, which would end the process. */
export async function connectionOf(pool: PostgresPool): Promise<PostgresClient> {
  hearPool(pool);
  const client = await pool.connect();
  hear(client);
  return client;
}

/** It may be lost before whoever asked for it has it: the server's last words may come with those that make it ready. */
function hearPool(pool: PostgresPool): void {
  const { on } = pool as { readonly on?: (event: 'acquire', listener: typeof hear) => void };
  if (on === undefined || heardPools.has(pool)) return;
  heardPools.add(pool);
  on.call(pool, 'acquire', hear);
}

function hear(client: PostgresClient): void {
  if (!heardClients.has(client)) client.on('error', () => {});
  heardClients.add(client);
}

/** Classes of the server's own codes, and codes of Node: shut down, starting, no connection, no connection left. */
const LOST_CODES = /^(08...|57P0[123]|53300|ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH)$/;
/** What `pg` itself says, without a code. */
const LOST_MESSAGES =
  /^(Connection terminated|Connection ended|Client has encountered a connection error|timeout exceeded when trying to connect)/;

/** Whether another connection may do better. */
export function isConnectionLost(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return typeof code === 'string' ? LOST_CODES.test(code) : LOST_MESSAGES.test(String(message));
}

/** The server's codes for too many connections and for starting, and what Node and `pg` report of no connection. */
const NEVER_SENT = /^(53300|57P03|ECONNREFUSED|EHOSTUNREACH|timeout exceeded when trying to connect.*)$/;

/** Whether a statement may have been executed although its connection was lost. */
export function mayHaveExecuted(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return !NEVER_SENT.test(String(code ?? message));
}

/** Not let in, no such database, or what Node and TLS say of a connection that is not made. */
const NO_CONNECTION = /^(28...|3D...|E(?!RR_)[A-Z]{3,}|ERR_TLS\w*|[A-Z_]*CERT[A-Z_]*)$/;

/** An error of the connection says to what, without what is secret; others are as they were. */
export function withPlace(error: unknown, place: string | undefined): unknown {
  if (place === undefined || typeof error !== 'object' || error === null) return error;
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const told = ` (PostgreSQL at ${place})`;
  // One error may be told to several who waited for the same connection.
  if (typeof message !== 'string' || message.endsWith(told)) return error;
  if (isConnectionLost(error) || (typeof code === 'string' && NO_CONNECTION.test(code)))
    Object.assign(error, { message: `${errorMessage(error)}${told}` });
  return error;
}
