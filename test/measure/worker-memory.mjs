/*
 * Measures the memory of a process that only executes jobs:
 *
 *   node test/measure/worker-memory.mjs [jobs] [bullmq|pg-boss]      (default 50000, bullmq; needs `npm run build`)
 *
 * The main process stores jobs in PostgreSQL and enqueues them. After each fifth of the jobs, the worker reports its
 * heap after a garbage collection and its resident memory. Uses the same services as `jobs.mjs`.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import pg from 'pg';
import { bullmqEngine } from '../../dist/src/durable/bullmq/index.js';
import { pgBossEngine } from '../../dist/src/durable/pg-boss/index.js';
import { PostgresRunStore } from '../../dist/src/durable/postgres/index.js';
import { defineTool, runJobs } from '../../dist/src/index.js';

const PARTS = 5;
const CONCURRENCY = 20;
const POLL_MS = 50;

const redis = new URL(process.env.TOOLWRIGHT_TEST_REDIS || 'redis://127.0.0.1:6379');
const connectionString = process.env.TOOLWRIGHT_TEST_POSTGRES || 'postgres://postgres@127.0.0.1:5432/test';
const connection = { host: redis.hostname, port: Number(redis.port || 6379) };

function open({ engine, name }) {
  const store = new PostgresRunStore({ connectionString, schema: name });
  const opened =
    engine === 'pg-boss'
      ? pgBossEngine({ connection: connectionString, schema: `${name}_boss` })
      : bullmqEngine({ connection, queue: name });
  return { store, engine: opened };
}

async function runWorker(setting) {
  const { store, engine } = open(setting);
  const parameters = { type: 'object', properties: { to: { type: 'string' } } };
  const tool = defineTool({
    name: 'send_mail',
    description: 'Sends a mail',
    parameters,
    execute: ({ to }) => `sent to ${to}`,
  });
  const jobs = await runJobs({ engine, store, tools: [tool], concurrency: CONCURRENCY });
  process.on('message', async (message) => {
    if (message === 'close') {
      await jobs.close();
      await engine.close();
      await store.close();
      process.disconnect();
      return;
    }
    globalThis.gc();
    const { heapUsed, rss } = process.memoryUsage();
    process.send({ heapUsed, rss });
  });
  process.send('ready');
}

async function enqueueAll({ store, engine }, { from, to }) {
  let next = from;
  const sendNext = async () => {
    while (next < to) {
      const id = `task_${next}`;
      next += 1;
      const call = {
        id,
        tool: 'send_mail',
        arguments: { to: `${id} ${'x'.repeat(200)}` },
        scope: { chatId: id },
      };
      const job = { ...call, fingerprint: 'f.1', idempotencyKey: id, callId: 'call_1' };
      await store.jobs.addJob(job, {});
      await engine.enqueue(job);
      await store.jobs.jobSent(id);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, sendNext));
}

async function measure(count, engineName) {
  const setting = { engine: engineName, name: `memory_${process.pid}` };
  const opened = open(setting);
  const client = new pg.Client({ connectionString });
  await client.connect();
  const options = { execArgv: ['--expose-gc'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] };
  const child = fork(fileURLToPath(import.meta.url), ['worker', JSON.stringify(setting)], options);
  await once(child, 'message');
  console.log(`| jobs completed (${engineName}) | heap, MB | resident, MB |\n| ---: | ---: | ---: |`);
  for (let part = 1; part <= PARTS; part += 1) {
    const [from, to] = [part - 1, part].map((parts) => (count / PARTS) * parts);
    await enqueueAll(opened, { from, to });
    for (let done = 0; done < to; ) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const { rows } = await client.query(
        `SELECT count(*) FROM ${setting.name}.jobs WHERE status = 'completed'`,
      );
      done = Number(rows[0].count);
    }
    child.send('report');
    const [{ heapUsed, rss }] = await once(child, 'message');
    console.log(`| ${to} | ${(heapUsed / 2 ** 20).toFixed(1)} | ${(rss / 2 ** 20).toFixed(1)} |`);
  }
  child.send('close');
  await once(child, 'exit');
  await opened.engine.close();
  await opened.store.close();
  await client.query(`DROP SCHEMA ${setting.name} CASCADE`);
  await client.query(`DROP SCHEMA IF EXISTS ${setting.name}_boss CASCADE`);
  await client.end();
  if (engineName === 'pg-boss') return;
  for (const name of [setting.name, `${setting.name}-news`]) {
    const queue = new Queue(name, { connection });
    await queue.obliterate({ force: true });
    await queue.close();
  }
}

const [first = '50000', second = 'bullmq'] = process.argv.slice(2);
if (first === 'worker') await runWorker(JSON.parse(second));
else await measure(Number(first), second);
