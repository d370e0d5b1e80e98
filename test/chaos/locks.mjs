// What a chaos run has left locked: in the tables themselves, in the server, and in the queue of the engine.
import { Queue } from 'bullmq';
import pg from 'pg';
import { bullmqPlace, openEngine, QUEUE } from './open.mjs';

const KEPT = {
  'runs that are held': 'SELECT count(*) FROM chaos.runs WHERE claim IS NOT NULL AND ended_claim IS NULL',
  'conversations that are held': 'SELECT count(*) FROM chaos.fleet_conversations WHERE claim IS NOT NULL',
  'conversations that are due': 'SELECT count(*) FROM chaos.fleet_conversations WHERE is_due',
  'jobs that are open': "SELECT count(*) FROM chaos.jobs WHERE status <> 'completed'",
};
const SERVER = {
  'transactions that are open': `
    SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()`,
  'locks of rows or tables': `
    SELECT count(*) FROM pg_locks JOIN pg_class ON pg_class.oid = relation
    WHERE relnamespace IN ('chaos'::regnamespace) AND pid <> pg_backend_pid()`,
};
const BOSS = {
  'jobs that pg-boss has given to a worker': "SELECT count(*) FROM pgboss.job WHERE state = 'active'",
};

/** Each line says what is locked; none where nothing is. `url`: of PostgreSQL, where there is one. */
export async function locksLeft(setting, url) {
  const { store, engine } = setting;
  const queries = {
    ...(store === 'postgres' ? { ...KEPT, ...SERVER } : {}),
    ...(engine === 'pg-boss' ? BOSS : {}),
  };
  const counts = [
    ...(url === undefined ? [] : await counted(url, queries)),
    ...(engine.startsWith('bullmq') ? [await activeIn(setting)] : []),
  ];
  return counts.filter(([, count]) => count > 0).map(([what, count]) => `${count} ${what}`);
}

async function counted(url, queries) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const counts = [];
    for (const [what, text] of Object.entries(queries)) {
      const { rows } = await client.query(text);
      counts.push([what, Number(rows[0].count)]);
    }
    return counts;
  } finally {
    await client.end();
  }
}

async function activeIn(setting) {
  const queue = new Queue(QUEUE, ...(await bullmqPlace(setting)));
  try {
    return ['jobs that BullMQ has given to a worker', await queue.getActiveCount()];
  } finally {
    await queue.close();
  }
}

/** What the engine gave up, by the ids of jobs. */
export async function givenUp(setting) {
  const engine = await openEngine(setting);
  try {
    const dead = (await engine?.deadJobs({ limit: 1000 })) ?? [];
    return new Map(dead.map(({ job, error, attempts }) => [job.id, `${error}, after ${attempts} attempts`]));
  } finally {
    await engine?.close();
  }
}
