import { isPlainObject, isRecord } from '../kernel/json.js';
import {
  ANYTHING,
  FILLED_TEXT,
  LIST,
  mistakenNames,
  type OptionFault,
  type OptionRule,
  type OptionTable,
  optionTable,
  protecting,
  withMethods,
  wrongValues,
} from '../kernel/options.js';
import { serverAddress } from '../kernel/server-address.js';

/** What BullMQ connects to with one of its backends. */
interface Broker {
  readonly address: OptionRule;
  /** A connection of the application's own. */
  readonly client: OptionRule;
  /** What else it takes, in an object. */
  readonly table: OptionTable;
  /** One of these says where the broker is. */
  readonly places: readonly string[];
  readonly fix: string;
}

/** A text of digits is what a variable of the environment is: both drivers read it. */
const PORT: OptionRule = {
  accepts: (value) => {
    const port = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
    return Number.isInteger(port) && Number(port) > 0 && Number(port) <= 65_535;
  },
  fix: 'a whole number from 1 to 65535',
};

/** A variable that is not set must not lead to this machine. */
const HOST = protecting(FILLED_TEXT);

/** They are refused only where they are misspelt: a newer driver may have more. */
function taken(names: string): Readonly<Record<string, OptionRule>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, ANYTHING]));
}

const PASSWORD = { pass: 'password: …', passwd: 'password: …' };

const REDIS: Broker = {
  address: serverAddress(
    'redis',
    "'redis://127.0.0.1:6379'; of PostgreSQL with backend: createPostgresBackend",
  ),
  client: withMethods(['connect', 'disconnect', 'duplicate'], 'a client'),
  places: ['host', 'port', 'path', 'url', 'sentinels', 'Connector'],
  fix: "'redis://127.0.0.1:6379', { host: '127.0.0.1', port: 6379 }, or a client; of PostgreSQL with backend: createPostgresBackend",
  table: optionTable<object>(
    'a connection to Redis',
    {
      ...taken(
        'Connector connectionName db disconnectTimeout family keepAlive name noDelay password role tls',
      ),
      ...taken('sentinelCommandTimeout sentinelMaxConnections sentinelPassword sentinelReconnectStrategy'),
      ...taken(
        'sentinelRetryStrategy sentinelTLS sentinelUsername enableTLSForSentinelMode failoverDetector',
      ),
      ...taken('natMap preferredSlaves updateSentinels username autoPipeliningIgnoredCommands protocol'),
      ...taken('autoResendUnfulfilledCommands autoResubscribe blockingTimeout blockingTimeoutGrace readOnly'),
      ...taken('clientInfoTag commandQueue commandTimeout connectTimeout disableClientInfo offlineQueue'),
      ...taken(
        'enableAutoPipelining enableOfflineQueue enableReadyCheck himportFieldsets keyPrefix lazyConnect',
      ),
      ...taken(
        'maxLoadingRetryTime maxRetriesPerRequest monitor reconnectOnError replyMapping retryStrategy',
      ),
      ...taken('scripts showFriendlyErrorStack skipVersionCheck socketTimeout stringNumbers'),
      host: HOST,
      port: PORT,
      path: HOST,
      url: protecting(serverAddress('redis', "'redis://127.0.0.1:6379'")),
      sentinels: protecting({ ...LIST, fix: "[{ host: '127.0.0.1', port: 26379 }]" }),
    },
    {
      ...PASSWORD,
      ...{ hostname: "host: '127.0.0.1'", uri: "url: 'redis://127.0.0.1:6379'", user: 'username: …' },
      ...{ database: 'db: 0', socket: 'host and port, not within socket' },
    },
  ),
};

const POSTGRES: Broker = {
  address: serverAddress('postgres', "'postgres://shop@127.0.0.1/shop'"),
  client: withMethods(['connect', 'query', 'end'], 'a pool'),
  places: ['host', 'port', 'connectionString', 'database', 'user'],
  fix: "'postgres://shop@127.0.0.1/shop', { connectionString, schema }, or new pg.Pool({ … })",
  table: optionTable<object>(
    'a connection to PostgreSQL',
    {
      ...taken('allowExitOnIdle application_name client_encoding Client connectionTimeoutMillis database'),
      ...taken(
        'enableChannelBinding fallback_application_name idle_in_transaction_session_timeout keepAlive',
      ),
      ...taken(
        'idleTimeoutMillis keepAliveInitialDelayMillis lock_timeout log max maxLifetimeSeconds maxUses',
      ),
      ...taken('migrate min onConnect options password pipeline Promise query_timeout schema skipMigrations'),
      ...taken('skipVersionCheck ssl sslnegotiation statement_timeout stream types user verify'),
      host: HOST,
      port: PORT,
      connectionString: protecting(serverAddress('postgres', "'postgres://shop@127.0.0.1/shop'")),
    },
    {
      ...PASSWORD,
      ...{ hostname: "host: '127.0.0.1'", username: 'user: …', db: 'database: …', dbname: 'database: …' },
      ...{ uri: 'connectionString: …', url: 'connectionString: …' },
    },
  ),
};

/** What is wrong with what BullMQ is to connect to: its drivers take what they do not know for this machine. */
export function connectionFaults(connection: unknown, backend: unknown): readonly OptionFault[] {
  const { address, client, table, places, fix } = backend === undefined ? REDIS : POSTGRES;
  if (typeof connection === 'string') return address.explain?.(connection, 'connection') ?? [];
  if (!isRecord(connection) || client.accepts(connection)) return [];
  // Others than its own are not copied: those of a `URL`.
  const saysWhere = places.some((name) => Object.hasOwn(connection, name));
  if (saysWhere || isPlainObject(connection)) {
    const path = 'connection.';
    const faults = [...wrongValues(connection, table, path), ...mistakenNames(connection, table, path)];
    // What is not said of a database is in variables that `pg` reads.
    if (saysWhere || faults.length > 0 || backend !== undefined) return faults;
  }
  return [
    {
      option: 'connection',
      problem: 'connection does not say where the broker is',
      fix: `connection: ${fix}`,
    },
  ];
}
