// Puts load on the PostgreSQL and Redis of the tests: opens connections and writes rows and keys, up to a limit, in
// its own database and under its own keys. Removes all of them when its standard input ends.
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';

const NAME = `filler_${randomBytes(6).toString('hex')}`;
const MAX_ROWS = 200_000;
const MAX_KEYS = 50_000;
const BATCH = 500;

const { FILL_POSTGRES, FILL_REDIS } = process.env;
let isOpen = true;
process.stdin.resume().once('end', () => {
  isOpen = false;
});

await Promise.all([fillPostgres(FILL_POSTGRES), fillRedis(FILL_REDIS)]);
process.exit();

async function fillPostgres(url) {
  if (!url) return;
  const server = new URL(url);
  await execute(server, `CREATE DATABASE ${NAME} TEMPLATE template0`);
  const database = new URL(server);
  database.pathname = NAME;
  await execute(database, 'CREATE TABLE runs (id bigint PRIMARY KEY, text text)');
  for (let rows = 0; isOpen; rows += BATCH) {
    const from = rows % MAX_ROWS;
    // `execute` opens a new connection each time, as programs that start and exit do.
    await execute(
      database,
      `INSERT INTO runs SELECT id, repeat(md5(id::text), 20) FROM generate_series(${from + 1}, ${from + BATCH}) AS id
         ON CONFLICT (id) DO UPDATE SET text = excluded.text || '';
       NOTIFY jobs, 'filled'; SELECT count(*) FROM pg_stat_activity`,
    );
  }
  await execute(server, `DROP DATABASE ${NAME} WITH (FORCE)`);
}

async function execute(url, statements) {
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  try {
    await client.query(statements);
  } finally {
    await client.end();
  }
}

async function fillRedis(url) {
  if (!url) return;
  const redis = new Redis(url);
  // Half of the keys have the default prefix of BullMQ.
  const keyOf = (index) => `${index % 2 === 0 ? 'bull:' : ''}${NAME}:${index}`;
  const value = 'x'.repeat(500);
  for (let keys = 0; isOpen; keys += BATCH) {
    const from = keys % MAX_KEYS;
    const filled = redis.pipeline();
    for (let index = from; index < from + BATCH; index += 1) filled.set(keyOf(index), value, 'EX', 3_600);
    await filled.publish(NAME, 'filled').dbsize().exec();
  }
  for (let from = 0; from < MAX_KEYS; from += BATCH)
    await redis.unlink(...Array.from({ length: BATCH }, (_, index) => keyOf(from + index)));
  await redis.quit();
}
