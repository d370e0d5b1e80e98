/*
 * Measures jobs on engines with real services:
 *
 *   node test/measure/jobs.mjs [jobs] [rounds]        (default 2000 and 5; needs `npm run build`)
 *
 * - jobs per second of BullMQ and pg-boss alone, of our engines, and of the whole path (call, outbox in PostgreSQL,
 *   engine, tool, result in PostgreSQL, completion). Payload, number of jobs and concurrency are the same; all jobs are
 *   enqueued first and then executed. Variants alternate within a round; the table has medians, and the median of the
 *   ratios within a round. The whole path is also compared with a package whose user inserts a row for each job;
 * - the whole path with and without 1,000 queued jobs of a tool that the worker does not have;
 * - the whole path with engines and stores in the process;
 * - 1, 2 and 4 worker processes that execute a tool which sleeps.
 *
 * Services: TOOLWRIGHT_TEST_REDIS and TOOLWRIGHT_TEST_POSTGRES, or the default ports of 127.0.0.1.
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

/** `all` resolves when `count` has been called as often as expected. */
function createCounter(expected) {
  const { promise, resolve } = Promise.withResolvers();
  let remaining = expected;
  const count = () => {
    remaining -= 1;
    if (remaining === 0) resolve();
  };
  return { all: promise, count };
}

async function sendConcurrently(count, send) {
  let next = 0;
  const sendNext = async () => {
    while (next < count) {
      next += 1;
      await send(`job-${next}`);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, sendNext));
}

/** Returns the milliseconds for enqueueing and for executing all jobs. */
async function time({ send, work }) {
  const startedAt = performance.now();
  await sendConcurrently(JOBS, send);
  const sent = performance.now();
  const { all, count } = createCounter(JOBS);
  const worker = await work(count);
  await all;
  await worker.drain();
  const done = performance.now();
  await worker.close();
  return { sendMs: sent - startedAt, executeMs: done - sent };
}

const plainEngines = {
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
      work: async (count) => {
        const options = { batchSize: CONCURRENCY, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
        await boss.work(name, options, async (jobs) => {
          for (const _ of jobs) count();
        });
        return {
          drain: () => boss.offWork(name, { wait: true }),
          close: () => boss.stop({ graceful: false }),
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
    work: async (count) => {
      const worker = new Worker(name, async () => count(), { ...options, concurrency: CONCURRENCY }, backend);
      return { drain: () => worker.close(), close: () => queue.close() };
    },
  };
}

/** Inserts a row in PostgreSQL for each job, as an application with its own outbox does. */
async function withRows({ send, work }) {
  const pool = new pg.Pool({ connectionString: postgres, max: 10 });
  const table = `${schema}${newName().replaceAll('-', '_')}`;
  await pool.query(`CREATE SCHEMA ${table} CREATE TABLE jobs (id text PRIMARY KEY, job jsonb NOT NULL)`);
  return {
    send: async (id) => {
      await pool.query(`INSERT INTO ${table}.jobs VALUES ($1, $2)`, [id, payloadOf(id)]);
      await send(id);
    },
    work: async (count) => {
      const { drain, close } = await work(count);
      return { drain, close: () => Promise.all([close(), pool.end()]) };
    },
  };
}

const engines = {
  'BullMQ on Redis': (queue) => bullmqEngine({ connection, queue }),
  'BullMQ on PostgreSQL': (queue) =>
    bullmqEngine({ connection: bullPostgres, backend: createPostgresBackend, queue }),
  'pg-boss': (queue) => pgBossEngine({ connection: postgres, schema, queue }),
};

function ownEngine(open) {
  const engine = open(newName());
  return {
    send: (id) => engine.enqueue(payloadOf(id)),
    work: async (count) => {
      const worker = await engine.work({ concurrency: CONCURRENCY, handle: async () => count() });
      return { drain: () => worker.close(), close: () => engine.close() };
    },
  };
}

/** The whole path: calls that start jobs, workers that execute them as calls, and stored results. */
function wholePath(engine, store) {
  const { counter, tool } = countingTool();
  const tools = new ToolRegistry({ engine, store }).register(tool);
  const foreignTool = defineTool({ ...tool, name: 'foreign' });
  const allTools = new ToolRegistry({ engine, store }).register(foreignTool);
  return {
    sendForeign: (id) =>
      allTools.executeWithContext('foreign', payloadOf(id).arguments, { callId: `foreign-${id}` }),
    send: (id) => tools.executeWithContext('send_mail', payloadOf(id).arguments, { callId: id }),
    work: async (count) => {
      counter.count = count;
      const worker = await runJobs({ engine, store, tools, concurrency: CONCURRENCY });
      return {
        drain: () => worker.close(),
        close: async () => {
          await engine.close();
          await store.close?.();
        },
      };
    },
  };
}

function countingTool() {
  const counter = { count: () => {} };
  const text = { type: 'string' };
  const parameters = { type: 'object', properties: { to: text, subject: text, text } };
  const execute = () => {
    counter.count();
    return 'sent';
  };
  return {
    counter,
    tool: defineTool({
      name: 'send_mail',
      description: 'Sends a mail',
      background: true,
      parameters,
      execute,
    }),
  };
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const rate = (ms) => Math.round((JOBS / ms) * 1000);
const medianRate = (times, part) => rate(median(times.map((time) => time[part])));
const totalOf = ({ sendMs, executeMs }) => sendMs + executeMs;

async function compare() {
  console.log(
    `\n${JOBS} jobs, concurrency ${CONCURRENCY}, medians of ${ROUNDS} rounds: jobs per second, enqueued and executed\n`,
  );
  console.log(
    '| engine | plain | our engine | ÷ plain | plain with rows | whole path, PostgreSQL store | ÷ plain ' +
      '| ÷ plain with rows | whole path: enqueueing | whole path: executing |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const [name, plain] of Object.entries(plainEngines)) {
    const times = { plain: [], ours: [], rows: [], whole: [] };
    for (let round = 0; round <= ROUNDS; round += 1) {
      const plainTime = await time(await plain());
      const ourTime = await time(ownEngine(engines[name]));
      const rowsTime = await time(await withRows(await plain()));
      const wholeTime = await time(wholePath(engines[name](newName()), postgresStore()));
      // The first round warms up.
      if (round === 0) continue;
      times.plain.push(plainTime);
      times.ours.push(ourTime);
      times.rows.push(rowsTime);
      times.whole.push(wholeTime);
    }
    const both = (list) => rate(median(list.map(totalOf)));
    const ratio = (list, to = times.plain) =>
      median(list.map((time, index) => totalOf(to[index]) / totalOf(time))).toFixed(2);
    const cells = [
      both(times.plain),
      both(times.ours),
      ratio(times.ours),
      both(times.rows),
      both(times.whole),
      ratio(times.whole),
      ratio(times.whole, times.rows),
      medianRate(times.whole, 'sendMs'),
      medianRate(times.whole, 'executeMs'),
    ];
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}

/** Compares executing jobs alone with executing them after queued jobs of a tool that the worker does not have. */
async function compareWithForeignJobs() {
  console.log(
    `\nThe whole path, executing, with ${FOREIGN} queued jobs of a tool that the worker does not have: jobs per second\n`,
  );
  console.log('| engine | without | with | ÷ without |\n| --- | ---: | ---: | ---: |');
  for (const name of Object.keys(engines)) {
    const times = { without: [], with: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const foreign of [0, FOREIGN]) {
        const path = wholePath(engines[name](newName()), postgresStore());
        await sendConcurrently(foreign, path.sendForeign);
        times[foreign === 0 ? 'without' : 'with'].push(await time(path));
      }
    }
    const ratio = median(
      times.without.map(({ executeMs }, index) => executeMs / times.with[index].executeMs),
    );
    const cells = [
      medianRate(times.without, 'executeMs'),
      medianRate(times.with, 'executeMs'),
      ratio.toFixed(2),
    ];
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}

async function measureInProcess() {
  console.log('\nCalls of a background tool with engine, store and worker in one process: jobs per second\n');
  console.log('| engine | store | started | executed |\n| --- | --- | ---: | ---: |');
  const pairs = [
    ['in the process', 'memory', () => new MemoryJobEngine(), () => new MemoryRunStore()],
    ['in the process', 'SQLite', () => new MemoryJobEngine(), () => new SqliteRunStore({ path: ':memory:' })],
    ['BullMQ on Redis', 'memory', () => engines['BullMQ on Redis'](newName()), () => new MemoryRunStore()],
  ];
  for (const [engine, store, openEngine, openStore] of pairs) {
    const times = [];
    for (let round = 0; round < 3; round += 1) times.push(await time(wholePath(openEngine(), openStore())));
    console.log(
      `| ${engine} | ${store} | ${medianRate(times, 'sendMs')} | ${medianRate(times, 'executeMs')} |`,
    );
  }
}

function postgresStore() {
  return new PostgresRunStore({ connectionString: postgres, schema: newName().replaceAll('-', '_') });
}

async function measureScaling() {
  console.log(
    `\nWorker processes with a tool that sleeps ${SLEEP_MS} ms, concurrency ${SLEEPERS} (at most ${(1000 / SLEEP_MS) * SLEEPERS} jobs per second each)\n`,
  );
  console.log('| engine | 1 worker | 2 | 4 | 4 ÷ 1 |\n| --- | ---: | ---: | ---: | ---: |');
  for (const name of ['BullMQ on Redis', 'pg-boss']) {
    const rates = [];
    for (const workers of [1, 2, 4]) rates.push(await rateWithWorkers(name, workers));
    const [one, two, four] = rates.map((jobsPerSecond) => jobsPerSecond.toFixed(1));
    console.log(`| ${name} | ${one} | ${two} | ${four} | ${(rates[2] / rates[0]).toFixed(2)} |`);
  }
}

/** Returns the jobs per second until the last job has completed. */
async function rateWithWorkers(name, workers) {
  const queue = newName();
  const engine = engines[name](queue);
  const total = workers * SLEEPERS * 20;
  const times = [];
  const { all, count } = createCounter(total);
  await engine.subscribe(({ type }) => {
    if (type !== 'end') return;
    times.push(performance.now());
    count();
  });
  const children = await Promise.all(Array.from({ length: workers }, () => startWorker(name, queue)));
  await Promise.all(Array.from({ length: total }, (_, index) => engine.enqueue(payloadOf(`s-${index}`))));
  const enqueuedAt = performance.now();
  await all;
  const seconds = (times.at(-1) - enqueuedAt) / 1000;
  for (const child of children) child.kill('SIGKILL');
  await engine.close();
  return total / seconds;
}

async function startWorker(name, queue) {
  const child = fork(fileURLToPath(import.meta.url), ['worker', name, queue, schema]);
  await once(child, 'message');
  return child;
}

/** A worker process of the last table. Its own store adds each job when the worker begins it. */
async function runWorker([name, queue, ownSchema]) {
  const engine =
    name === 'pg-boss'
      ? pgBossEngine({ connection: postgres, schema: ownSchema, queue })
      : bullmqEngine({ connection, queue });
  const { tool } = countingTool();
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
    await compareWithForeignJobs();
    await measureInProcess();
    await measureScaling();
  } finally {
    const { rows } = await client.query('SELECT nspname FROM pg_namespace WHERE nspname LIKE $1', [
      `${schema}%`,
    ]);
    for (const { nspname } of rows) await client.query(`DROP SCHEMA ${nspname} CASCADE`);
    await client.end();
  }
}

if (process.argv[2] === 'worker') await runWorker(process.argv.slice(3));
else await main();
