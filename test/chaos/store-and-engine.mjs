// Opens the store and the engine from the setting, which each process receives as JSON. Modules are loaded only if
// they are needed, because workers are restarted all the time.
export const QUEUE = 'toolwright';

const STORES = {
  async sqlite({ file }) {
    const { SqliteRunStore } = await import('../../dist/src/durable/stores/index.js');
    return new SqliteRunStore({ path: file });
  },
  async postgres({ postgres }, options) {
    const { PostgresRunStore } = await import('../../dist/src/durable/postgres/index.js');
    return new PostgresRunStore({ connectionString: postgres, schema: 'chaos', ...options });
  },
};

export function openStore(setting, options = {}) {
  return STORES[setting.store](setting, options);
}

/** Returns the connection and the backend of a BullMQ queue. */
export async function bullmqConnection({ engine, postgres, redisPort }) {
  if (engine === 'bullmq') return [{ connection: { host: '127.0.0.1', port: redisPort } }, undefined];
  const { createPostgresBackend } = await import('bullmq');
  return [{ connection: { connectionString: postgres } }, createPostgresBackend];
}

/** BullMQ does not migrate PostgreSQL itself; a deployment runs this once. */
export async function migrateBullmq(connectionString) {
  const { runMigrations } = await import('bullmq');
  const { Client } = (await import('pg')).default;
  const client = new Client({ connectionString });
  await client.connect();
  await runMigrations(client);
  await client.end();
}

export async function openEngine(setting) {
  const { engine, store, postgres, leaseMs } = setting;
  if (engine === 'none') return undefined;
  if (engine === 'pg-boss') {
    const { pgBossEngine } = await import('../../dist/src/durable/pg-boss/index.js');
    const transactional = store === 'postgres';
    return pgBossEngine({ connection: postgres, heartbeatSeconds: 10, transactional });
  }
  const { bullmqEngine } = await import('../../dist/src/durable/bullmq/index.js');
  const [connection, backend] = await bullmqConnection(setting);
  return bullmqEngine({ ...connection, ...(backend ? { backend } : {}), queue: QUEUE, leaseMs });
}
