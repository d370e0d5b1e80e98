// What a process of a chaos run is made from, by its setting: plain JSON that each process gets. Only what it needs is
// loaded: workers are started all the time.
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

/** What a queue of BullMQ is made from: its connection, and its backend. */
export async function bullmqPlace({ engine, postgres, redisPort }) {
  if (engine === 'bullmq') return [{ connection: { host: '127.0.0.1', port: redisPort } }, undefined];
  const { createPostgresBackend } = await import('bullmq');
  return [{ connection: { connectionString: postgres } }, createPostgresBackend];
}

/** As each deployment does it by hand. */
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
  const [connection, backend] = await bullmqPlace(setting);
  return bullmqEngine({ ...connection, ...(backend ? { backend } : {}), queue: QUEUE, leaseMs });
}
