// Another program on the PostgreSQL and Redis of the tests: it fills them, up to a limit, within a database and under
// keys of its own, opens and closes connections, and removes all of it when its standard input ends.
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';

const NAME = `filler_${randomBytes(6).toString('hex')}`;
const MOST_ROWS = 200_000;
const MOST_KEYS = 50_000;
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
  const place = new URL(url);
  await asked(place, `CREATE DATABASE ${NAME} TEMPLATE template0`);
  const own = new URL(place);
  own.pathname = NAME;
  await asked(own, 'CREATE TABLE runs (id bigint PRIMARY KEY, text text)');
  for (let rows = 0; isOpen; rows += BATCH) {
    const from = rows % MOST_ROWS;
    // A connection of its own each time, as programs come and go.
    await asked(
      own,
      `INSERT INTO runs SELECT id, repeat(md5(id::text), 20) FROM generate_series(${from + 1}, ${from + BATCH}) AS id
         ON CONFLICT (id) DO UPDATE SET text = excluded.text || '';
       NOTIFY jobs, 'filled'; SELECT count(*) FROM pg_stat_activity`,
    );
  }
  await asked(place, `DROP DATABASE ${NAME} WITH (FORCE)`);
}

async function asked(url, statements) {
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
  // Under the prefix that BullMQ has by default, too.
  const keyOf = (index) => `${index % 2 === 0 ? 'bull:' : ''}${NAME}:${index}`;
  const value = 'x'.repeat(500);
  for (let keys = 0; isOpen; keys += BATCH) {
    const from = keys % MOST_KEYS;
    const filled = redis.pipeline();
    for (let index = from; index < from + BATCH; index += 1) filled.set(keyOf(index), value, 'EX', 3_600);
    await filled.publish(NAME, 'filled').dbsize().exec();
  }
  for (let from = 0; from < MOST_KEYS; from += BATCH)
    await redis.unlink(...Array.from({ length: BATCH }, (_, index) => keyOf(from + index)));
  await redis.quit();
}
