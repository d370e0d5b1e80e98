// What a process of a chaos run is made from, by its setting: plain JSON that each process gets.
import { bullmqEngine } from '../../dist/src/bullmq/index.js';
import { pgBossEngine } from '../../dist/src/pg-boss/index.js';
import { PostgresRunStore } from '../../dist/src/postgres/index.js';
import { SqliteRunStore } from '../../dist/src/stores/index.js';

export function openStore({ store, postgres, file }, options = {}) {
  if (store === 'sqlite') return new SqliteRunStore({ path: file });
  return new PostgresRunStore({ connectionString: postgres, schema: 'chaos', ...options });
}

export function openEngine({ engine, postgres, redisPort }) {
  if (engine === 'pg-boss') return pgBossEngine({ connection: postgres, heartbeatSeconds: 10 });
  if (engine !== 'bullmq') return undefined;
  return bullmqEngine({ connection: { host: '127.0.0.1', port: redisPort }, leaseMs: 1000 });
}
