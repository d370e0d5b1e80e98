// What a process of a chaos run is made from, by its setting: plain JSON that each process gets.
import { createPostgresBackend } from 'bullmq';
import { bullmqEngine } from '../../dist/src/bullmq/index.js';
import { pgBossEngine } from '../../dist/src/pg-boss/index.js';
import { PostgresRunStore } from '../../dist/src/postgres/index.js';
import { SqliteRunStore } from '../../dist/src/stores/index.js';

export const QUEUE = 'toolwright';

export function openStore({ store, postgres, file }, options = {}) {
  if (store === 'sqlite') return new SqliteRunStore({ path: file });
  return new PostgresRunStore({ connectionString: postgres, schema: 'chaos', ...options });
}

export function bullmqConnection({ engine, postgres, redisPort }) {
  if (engine === 'bullmq-postgres') return { connection: { connectionString: postgres } };
  return { connection: { host: '127.0.0.1', port: redisPort } };
}

export function bullmqBackend({ engine }) {
  return engine === 'bullmq-postgres' ? createPostgresBackend : undefined;
}

export function openEngine(setting) {
  const { engine, store, postgres } = setting;
  const transactional = store === 'postgres';
  if (engine === 'pg-boss')
    return pgBossEngine({ connection: postgres, heartbeatSeconds: 10, transactional });
  if (!engine.startsWith('bullmq')) return undefined;
  const backend = bullmqBackend(setting);
  return bullmqEngine({
    ...bullmqConnection(setting),
    ...(backend ? { backend } : {}),
    queue: QUEUE,
    leaseMs: 1000,
  });
}
