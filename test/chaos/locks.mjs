// Finds locks that remain after a chaos run: in the tables, in the PostgreSQL server and in the queue of the engine.
import { Queue } from 'bullmq';
import pg from 'pg';
import { bullmqConnection, openEngine, QUEUE } from './store-and-engine.mjs';

const STORE_QUERIES = {
  'claimed runs': 'SELECT count(*) FROM chaos.runs WHERE claim IS NOT NULL AND ended_claim IS NULL',
  'claimed conversations': 'SELECT count(*) FROM chaos.fleet_conversations WHERE claim IS NOT NULL',
  'due conversations': 'SELECT count(*) FROM chaos.fleet_conversations WHERE is_due',
  'open jobs': "SELECT count(*) FROM chaos.jobs WHERE status <> 'completed'",
};
const SERVER_QUERIES = {
  'open transactions': `
    SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()`,
  'row or table locks': `
    SELECT count(*) FROM pg_locks JOIN pg_class ON pg_class.oid = relation
    WHERE relnamespace IN ('chaos'::regnamespace) AND pid <> pg_backend_pid()`,
};
const PG_BOSS_QUERIES = {
  'active jobs in pg-boss': "SELECT count(*) FROM pgboss.job WHERE state = 'active'",
};

/** Returns one line for each kind of lock that remains. `url` is the PostgreSQL server, if the trial has one. */
export async function remainingLocks(setting, url) {
  const { store, engine } = setting;
  const queries = {
    ...(store === 'postgres' ? { ...STORE_QUERIES, ...SERVER_QUERIES } : {}),
    ...(engine === 'pg-boss' ? PG_BOSS_QUERIES : {}),
  };
  const counts = [
    ...(url === undefined ? [] : await countRows(url, queries)),
    ...(engine.startsWith('bullmq') ? [await countActiveJobs(setting)] : []),
  ];
  return counts.filter(([, count]) => count > 0).map(([kind, count]) => `${count} ${kind}`);
}

async function countRows(url, queries) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const counts = [];
    for (const [kind, text] of Object.entries(queries)) {
      const { rows } = await client.query(text);
      counts.push([kind, Number(rows[0].count)]);
    }
    return counts;
  } finally {
    await client.end();
  }
}

async function countActiveJobs(setting) {
  const queue = new Queue(QUEUE, ...(await bullmqConnection(setting)));
  try {
    return ['active jobs in BullMQ', await queue.getActiveCount()];
  } finally {
    await queue.close();
  }
}

/** Returns the last error of each job that the engine no longer retries, by job id. */
export async function deadJobErrors(setting) {
  const engine = await openEngine(setting);
  try {
    const deadJobs = (await engine?.deadJobs({ limit: 1000 })) ?? [];
    return new Map(
      deadJobs.map(({ job, error, attempts }) => [job.id, `${error}, after ${attempts} attempts`]),
    );
  } finally {
    await engine?.close();
  }
}
