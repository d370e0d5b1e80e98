/*
 * Measures started work on engines against real services:
 *
 *   node test/measure/jobs.mjs [jobs] [rounds]        (default 2000 and 5; needs `npm run build`)
 *
 * - jobs per second of plain BullMQ and plain pg-boss, of our engines alone, and of the whole path (a call that starts
 *   the work, the outbox in PostgreSQL, the engine, the tool as a call, its result in PostgreSQL, the completion): the
 *   same payload, the same number of jobs at the same time, all enqueued first and then done, in rounds that take turns;
 *   medians, and the median of ours ÷ plain within a round. The whole path is also compared with a plain engine whose
 *   user inserts a row of PostgreSQL before each job, as the outbox does;
 * - the whole path beside 1,000 jobs of a tool that the worker lacks, ÷ without them, in rounds that take turns;
 * - the whole path with engines and stores in the process;
 * - 1, 2 and 4 worker processes that do a tool which sleeps.
 *
 * Services: TOOLWRIGHT_TEST_REDIS and TOOLWRIGHT_TEST_POSTGRES, or those on the usual ports of 127.0.0.1.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createPostgresBackend, Queue, runMigrations, Worker } from 'bullmq';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { bullmqEngine } from '../../dist/src/durable/bullmq/index.js';
import { pgBossEngine } from '../../dist/src/durable/pg-boss/index.js';
import { PostgresRunStore } from '../../dist/src/durable/postgres/index.js';
import { MemoryRunStore, SqliteRunStore } from '../../dist/src/durable/stores/index.js';
import { defineTool, MemoryJobEngine, runJobs, ToolRegistry } from '../../dist/src/index.js';

const JOBS = Number(process.argv[2] ?? 2000);
const ROUNDS = Number(process.argv[3] ?? 5);
const FOREIGN = 1000;
const CONCURRENCY = 20;
const SLEEP_MS = 100;
const SLEEPERS = 5;

const redis = new URL(process.env.TOOLWRIGHT_TEST_REDIS || 'redis://127.0.0.1:6379');
const postgres = process.env.TOOLWRIGHT_TEST_POSTGRES || 'postgres://postgres@127.0.0.1:5432/test';
const connection = { host: redis.hostname, port: Number(redis.port || 6379) };
const schema = `measure_${process.pid}_`;
const bullSchema = `${schema}_bull`;
const bullPostgres = { connectionString: postgres, schema: bullSchema, max: CONCURRENCY };
let names = 0;

function newName() {
  names += 1;
  return `measure-${process.pid}-${names}`;
}

const payloadOf = (id) => ({
  id,
  tool: 'send_mail',
  arguments: { to: 'ada@example.org', subject: 'Statement', text: 'x'.repeat(200) },
  scope: { channel: 'web', chatId: '7', owner: { user: 'u1' } },
  fingerprint: 'f.1',
  idempotencyKey: `key-${id}`,
  callId: 'call_1',
});

/** So many ids, and what is called with each and resolves when all were. */
function countTo(count) {
  const { promise, resolve } = Promise.withResolvers();
  let left = count;
  const one = () => {
    left -= 1;
    if (left === 0) resolve();
  };
  return { all: promise, one };
}

async function inTurns(count, send) {
  let next = 0;
  const line = async () => {
    while (next < count) {
      next += 1;
      await send(`job-${next}`);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, line));
}

/** Milliseconds that enqueueing and doing take. */
async function time({ send, work }) {
  const begun = performance.now();
  await inTurns(JOBS, send);
  const sent = performance.now();
  const { all, one } = countTo(JOBS);
  const close = await work(one);
  await all;
  await close.drain();
  const done = performance.now();
  await close.rest();
  return { sendMs: sent - begun, doMs: done - sent };
}

const bare = {
  async 'BullMQ on Redis'() {
    return plainBullmq({ connection });
  },
  async 'BullMQ on PostgreSQL'() {
    return plainBullmq({ connection: bullPostgres }, createPostgresBackend);
  },
  async 'pg-boss'() {
    const boss = new PgBoss({ connectionString: postgres, schema, max: 10 });
    boss.on('error', () => {});
    await boss.start();
    const name = newName();
    await boss.createQueue(name, { heartbeatSeconds: 30 });
    return {
      send: (id) => boss.send(name, { job: payloadOf(id) }, { id: crypto.randomUUID() }),
      work: async (one) => {
        const options = { batchSize: CONCURRENCY, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
        await boss.work(name, options, async (jobs) => {
          for (const _ of jobs) one();
        });
        return {
          drain: () => boss.offWork(name, { wait: true }),
          rest: () => boss.stop({ graceful: false }),
        };
      },
    };
  },
};

function plainBullmq(options, backend) {
  const name = newName();
  const queue = new Queue(name, options, backend);
  return {
    send: (id) =>
      queue.add('send_mail', { job: payloadOf(id) }, { jobId: id, removeOnComplete: { age: 86_400 } }),
    work: async (one) => {
      const worker = new Worker(name, async () => one(), { ...options, concurrency: CONCURRENCY }, backend);
      return { drain: () => worker.close(), rest: () => queue.close() };
    },
  };
}

/** The same with a row of PostgreSQL for each job, as a program without an outbox of ours stores its own. */
async function withRows({ send, work }) {
  const pool = new pg.Pool({ connectionString: postgres, max: 10 });
  const table = `${schema}${newName().replaceAll('-', '_')}`;
  await pool.query(`CREATE SCHEMA ${table} CREATE TABLE jobs (id text PRIMARY KEY, job jsonb NOT NULL)`);
  return {
    send: async (id) => {
      await pool.query(`INSERT INTO ${table}.jobs VALUES ($1, $2)`, [id, payloadOf(id)]);
      await send(id);
    },
    work: async (one) => {
      const { drain, rest } = await work(one);
      return { drain, rest: () => Promise.all([rest(), pool.end()]) };
    },
  };
}

const engines = {
  'BullMQ on Redis': (queue) => bullmqEngine({ connection, queue }),
  'BullMQ on PostgreSQL': (queue) =>
    bullmqEngine({ connection: bullPostgres, backend: createPostgresBackend, queue }),
  'pg-boss': (queue) => pgBossEngine({ connection: postgres, schema, queue }),
};

function ours(open) {
  const engine = open(newName());
  return {
    send: (id) => engine.enqueue(payloadOf(id)),
    work: async (one) => {
      const worker = await engine.work({ concurrency: CONCURRENCY, handle: async () => one() });
      return { drain: () => worker.close(), rest: () => engine.close() };
    },
  };
}

/** All of it: calls that start work, workers that do it as calls, results that are recorded. */
function whole(engine, store) {
  const { counted, tool } = countedTool();
  const tools = new ToolRegistry({ engine, store }).register(tool);
  const foreign = defineTool({ ...tool, name: 'foreign' });
  const all = new ToolRegistry({ engine, store }).register(foreign);
  return {
    sendForeign: (id) =>
      all.executeWithContext('foreign', payloadOf(id).arguments, { callId: `foreign-${id}` }),
    send: (id) => tools.executeWithContext('send_mail', payloadOf(id).arguments, { callId: id }),
    work: async (one) => {
      counted.one = one;
      const worker = await runJobs({ engine, store, tools, concurrency: CONCURRENCY });
      return {
        drain: () => worker.close(),
        rest: async () => {
          await engine.close();
          await store.close?.();
        },
      };
    },
  };
}

function countedTool() {
  const counted = { one: () => {} };
  const text = { type: 'string' };
  const parameters = { type: 'object', properties: { to: text, subject: text, text } };
  const execute = () => {
    counted.one();
    return 'sent';
  };
  return {
    counted,
    tool: defineTool({ name: 'send_mail', description: 'Sends', background: true, parameters, execute }),
  };
}

const median = (list) => [...list].sort((one, other) => one - other)[Math.floor(list.length / 2)];
const rate = (ms) => Math.round((JOBS / ms) * 1000);
const medianRate = (times, part) => rate(median(times.map((each) => each[part])));
const totalOf = ({ sendMs, doMs }) => sendMs + doMs;

async function compare() {
  console.log(
    `\n${JOBS} jobs, ${CONCURRENCY} at a time, medians of ${ROUNDS} rounds in turn: jobs per second, enqueued and done\n`,
  );
  console.log(
    '| engine | plain | our engine | ÷ plain | plain with rows | whole path, PostgreSQL store | ÷ plain | ÷ plain with rows | of it enqueued | done |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const [name, plain] of Object.entries(bare)) {
    const times = { plain: [], ours: [], rows: [], whole: [] };
    for (let round = 0; round <= ROUNDS; round += 1) {
      const plainTime = await time(await plain());
      const ourTime = await time(ours(engines[name]));
      const rowsTime = await time(await withRows(await plain()));
      const wholeTime = await time(whole(engines[name](newName()), postgresStore()));
      // The first one warms up.
      if (round === 0) continue;
      times.plain.push(plainTime);
      times.ours.push(ourTime);
      times.rows.push(rowsTime);
      times.whole.push(wholeTime);
    }
    const both = (list) => rate(median(list.map(totalOf)));
    const ratio = (list, to = times.plain) =>
      median(list.map((each, index) => totalOf(to[index]) / totalOf(each))).toFixed(2);
    const cells = [
      both(times.plain),
      both(times.ours),
      ratio(times.ours),
      both(times.rows),
      both(times.whole),
      ratio(times.whole),
      ratio(times.whole, times.rows),
      medianRate(times.whole, 'sendMs'),
      medianRate(times.whole, 'doMs'),
    ];
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}

/** What a worker does of its own, enqueued after jobs of a tool that it lacks. */
async function besideForeign() {
  console.log(
    `\nThe whole path, done, beside ${FOREIGN} jobs of a tool that the worker lacks: jobs per second\n`,
  );
  console.log('| engine | without | beside them | ÷ without |\n| --- | ---: | ---: | ---: |');
  for (const name of Object.keys(engines)) {
    const times = { without: [], beside: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const foreign of [0, FOREIGN]) {
        const path = whole(engines[name](newName()), postgresStore());
        await inTurns(foreign, path.sendForeign);
        times[foreign === 0 ? 'without' : 'beside'].push(await time(path));
      }
    }
    const ratio = median(times.without.map(({ doMs }, index) => doMs / times.beside[index].doMs));
    const cells = [medianRate(times.without, 'doMs'), medianRate(times.beside, 'doMs'), ratio.toFixed(2)];
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}

async function compareWhole() {
  console.log('\nThe same as calls of a background tool, with a store, in one process: jobs per second\n');
  console.log('| engine | store | started | done |\n| --- | --- | ---: | ---: |');
  const pairs = [
    ['in the process', 'memory', () => new MemoryJobEngine(), () => new MemoryRunStore()],
    ['in the process', 'SQLite', () => new MemoryJobEngine(), () => new SqliteRunStore({ path: ':memory:' })],
    ['BullMQ on Redis', 'memory', () => engines['BullMQ on Redis'](newName()), () => new MemoryRunStore()],
  ];
  for (const [engine, store, open, keep] of pairs) {
    const times = [];
    for (let round = 0; round < 3; round += 1) times.push(await time(whole(open(), keep())));
    console.log(`| ${engine} | ${store} | ${medianRate(times, 'sendMs')} | ${medianRate(times, 'doMs')} |`);
  }
}

function postgresStore() {
  const own = newName().replaceAll('-', '_');
  return new PostgresRunStore({ connectionString: postgres, schema: own });
}

async function scale() {
  console.log(
    `\nWorker processes that do a tool which sleeps ${SLEEP_MS} ms, ${SLEEPERS} at a time each (${(1000 / SLEEP_MS) * SLEEPERS} jobs per second at most)\n`,
  );
  console.log('| engine | 1 worker | 2 | 4 | 4 ÷ 1 |\n| --- | ---: | ---: | ---: | ---: |');
  for (const name of ['BullMQ on Redis', 'pg-boss']) {
    const rates = [];
    for (const workers of [1, 2, 4]) rates.push(await scaled(name, workers));
    const [one, two, four] = rates.map((each) => each.toFixed(1));
    console.log(`| ${name} | ${one} | ${two} | ${four} | ${(rates[2] / rates[0]).toFixed(2)} |`);
  }
}

/** Jobs per second from the first to the last that is done. */
async function scaled(name, workers) {
  const queue = newName();
  const engine = engines[name](queue);
  const count = workers * SLEEPERS * 20;
  const times = [];
  const { all, one } = countTo(count);
  await engine.subscribe(({ type }) => {
    if (type !== 'end') return;
    times.push(performance.now());
    one();
  });
  const children = await Promise.all(Array.from({ length: workers }, () => startWorker(name, queue)));
  await Promise.all(Array.from({ length: count }, (_, index) => engine.enqueue(payloadOf(`s-${index}`))));
  const since = performance.now();
  await all;
  const seconds = (times.at(-1) - since) / 1000;
  for (const child of children) child.kill('SIGKILL');
  await engine.close();
  return count / seconds;
}

async function startWorker(name, queue) {
  const child = fork(fileURLToPath(import.meta.url), ['worker', name, queue, schema]);
  await once(child, 'message');
  return child;
}

/** A worker of the third table: its jobs are in no store but one of its own, which takes what comes. */
async function beWorker([name, queue, ownSchema]) {
  const engine =
    name === 'pg-boss'
      ? pgBossEngine({ connection: postgres, schema: ownSchema, queue })
      : bullmqEngine({ connection, queue });
  const { tool } = countedTool();
  const sleeping = defineTool({
    ...tool,
    execute: () => new Promise((resolve) => setTimeout(() => resolve('sent'), SLEEP_MS)),
  });
  const store = new MemoryRunStore();
  const { jobs } = store;
  const begin = jobs.beginJob.bind(jobs);
  jobs.beginJob = (id, attempt) => {
    jobs.addJob(payloadOf(id), {});
    return begin(id, attempt);
  };
  await runJobs({ engine, store, tools: [sleeping], concurrency: SLEEPERS });
  process.send('ready');
}

async function main() {
  const client = new pg.Client({ connectionString: postgres });
  await client.connect();
  await runMigrations(client, bullSchema);
  try {
    await compare();
    await besideForeign();
    await compareWhole();
    await scale();
  } finally {
    const { rows } = await client.query('SELECT nspname FROM pg_namespace WHERE nspname LIKE $1', [
      `${schema}%`,
    ]);
    for (const { nspname } of rows) await client.query(`DROP SCHEMA ${nspname} CASCADE`);
    await client.end();
  }
}

if (process.argv[2] === 'worker') await beWorker(process.argv.slice(3));
else await main();
