import 'reflect-metadata';
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createPostgresBackend, Queue, runMigrations } from 'bullmq';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import {
  cancelJob,
  defineTool,
  type Job,
  type JobEngine,
  type JobOptions,
  MemoryJobEngine,
  type RunJobsOptions,
  runJobs,
  ToolRegistry,
} from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { pgBossEngine } from 'toolwright/pg-boss';
import { MemoryRunStore } from 'toolwright/stores';
import { describePostgres, describeRedis } from '../services/services.js';

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function opened<Engine extends JobEngine>(engine: Engine): Engine {
  closers.push(() => engine.close());
  return engine;
}

/** A background tool, and the ids of its completed calls. */
function backgroundTool(name: string, background: true | { readonly queue: string } = true) {
  const done: string[] = [];
  const tool = defineTool({
    name,
    description: `The tool ${name}`,
    background,
    execute: (_args, { callId }) => void done.push(callId),
  });
  return { tool, done };
}

interface Given {
  readonly id: string;
  readonly delay: number;
}

/** The engine, with the jobs that workers gave back, and the queues that workers read. */
function observed(engine: JobEngine) {
  const [given, queues]: [Given[], (string | undefined)[]] = [[], []];
  const work: JobEngine['work'] = (options) => {
    queues.push(options.queue);
    return engine.work({
      ...options,
      handle: (job, attempt) =>
        options.handle(job, {
          ...attempt,
          giveBack: (how = {}) => {
            given.push({ id: job.callId, delay: how.delay ?? 0 });
            return attempt.giveBack(how);
          },
        }),
    });
  };
  return { engine: Object.create(engine, bound(engine, work)) as JobEngine, given, queues };
}

/** Binds the methods, because private members need the engine itself as `this`. */
function bound(engine: JobEngine, work: JobEngine['work']): PropertyDescriptorMap {
  const names = ['enqueue', 'cancel', 'publish', 'subscribe', 'deadJobs', 'revive', 'close'] as const;
  const methods = names.map((name) => [name, { value: engine[name].bind(engine) }] as const);
  return { ...Object.fromEntries(methods), work: { value: work } };
}

async function start(
  place: Pick<RunJobsOptions, 'engine' | 'store'>,
  { tool, ids }: { readonly tool: ReturnType<typeof defineTool>; readonly ids: readonly string[] },
) {
  const tools = new ToolRegistry(place).register(tool);
  for (const callId of ids) await tools.executeWithContext(tool.name, {}, { callId });
}

async function working(options: RunJobsOptions) {
  const worker = await runJobs(options);
  closers.push(() => worker.close());
  return worker;
}

async function until(isSo: () => boolean | Promise<boolean>) {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const idsOf = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}-${index}`);

/** Tests for every engine; `open` connects like another process. */
function testEngines(open: (queue: string) => JobEngine, newName: () => string): void {
  test('a worker gives back jobs of tools that it does not have, and another worker runs them', async () => {
    const queue = newName();
    const store = new MemoryRunStore();
    const { engine, given } = observed(opened(open(queue)));
    const [own, foreign] = [backgroundTool('own'), backgroundTool('foreign')];
    await start({ engine, store }, { tool: foreign.tool, ids: idsOf('foreign', 20) });
    await start({ engine, store }, { tool: own.tool, ids: idsOf('own', 30) });
    const without = await working({ engine, store, tools: [own.tool], concurrency: 1 });
    await until(() => own.done.length === 30);
    expect(foreign.done).toEqual([]);
    await until(() => given.some(({ delay }) => delay > 1000));
    const delays = given.filter(({ id }) => id === given[0]?.id).map(({ delay }) => delay);
    expect(delays.slice(0, 3)).toEqual([1000, 0, 2000].slice(0, delays.length));
    await without.close();
    // Another connection, as in another process; an in-process engine is shared.
    await working({ engine: opened(open(queue)), store, tools: [foreign.tool], concurrency: 1 });
    await until(() => foreign.done.length === 20);
    expect(new Set(foreign.done).size).toBe(20);
    expect(own.done).toHaveLength(30);
    expect(await engine.deadJobs()).toEqual([]);
  });

  test('a worker reads only the queues of its tools, and jobs of any queue can be cancelled', async () => {
    const queue = newName();
    const store = new MemoryRunStore();
    const [plain, mail] = [backgroundTool('plain'), backgroundTool('mail', { queue: 'mail' })];
    const { engine, given, queues } = observed(opened(open(queue)));
    await start({ engine, store }, { tool: plain.tool, ids: ['plain-1'] });
    await start({ engine, store }, { tool: mail.tool, ids: ['mail-1', 'mail-2'] });
    const { jobs } = await store.jobs.listJobs();
    const cancelled = jobs.find(({ job }) => job.callId === 'mail-1')?.job.id ?? '';
    expect(await cancelJob(cancelled, { engine: opened(open(queue)), store })).toBe(true);
    const worker = await working({ engine, store, tools: [mail.tool] });
    await until(() => mail.done.length === 1);
    await worker.close();
    expect(mail.done).toEqual(['mail-2']);
    expect(queues).toEqual(['mail']);
    expect(given).toEqual([]);
    await working({ engine, store, tools: [mail.tool, plain.tool] });
    await until(() => plain.done.length === 1);
    expect(queues.slice(1)).toEqual(['mail', undefined]);
  });

  test('runs jobs that wait in the queue of an earlier version of the tool', async () => {
    const queue = newName();
    const store = new MemoryRunStore();
    const [before, now] = [backgroundTool('mail'), backgroundTool('mail', { queue: 'mail' })];
    const engine = opened(open(queue));
    await start({ engine, store }, { tool: before.tool, ids: idsOf('before', 3) });
    // Here the outbox of the store moves the job to the right queue.
    const [routed, plain] = [backgroundTool('label', { queue: 'labels' }), backgroundTool('label')];
    await start({ engine, store }, { tool: routed.tool, ids: ['routed'] });
    await working({ engine, store, tools: [now.tool, plain.tool], sweepMs: 20, silentForMs: 50 });
    await until(() => now.done.length === 3 && plain.done.length === 1);
  });
}

describe('runJobs on MemoryJobEngine', () => {
  const engines = new Map<string, JobEngine>();
  const open = (queue: string) => {
    const engine = engines.get(queue) ?? new MemoryJobEngine();
    engines.set(queue, engine);
    return engine;
  };
  testEngines(open, () => crypto.randomUUID());

  test('spreads a thousand returned jobs over time, up to a delay of 30 seconds', async () => {
    const store = new MemoryRunStore();
    const { engine, given } = observed(opened(new MemoryJobEngine()));
    const [own, foreign] = [backgroundTool('own'), backgroundTool('foreign')];
    await start({ engine, store }, { tool: foreign.tool, ids: idsOf('foreign', 1000) });
    await start({ engine, store }, { tool: own.tool, ids: ['own'] });
    await working({ engine, store, tools: [own.tool] });
    await until(() => own.done.length === 1);
    const delays = given.slice(0, 1000).map(({ delay }) => delay);
    expect(Math.min(...delays)).toBe(1000);
    expect(Math.max(...delays)).toBe(30_000);
    const perSecond = Map.groupBy(delays, (delay) => Math.floor(delay / 1000));
    perSecond.delete(30);
    expect(Math.max(...Array.from(perSecond.values(), ({ length }) => length))).toBeLessThan(70);
    // Returned jobs are not written to the store: that would cost as much as running them.
    expect(await store.jobs.listJobs({ status: 'running' })).toMatchObject({ jobs: [] });
  });
});

/** A job as the previous version stored it. */
const OLD_JOB: Job = {
  id: 'task_old',
  tool: 'mail',
  arguments: {},
  scope: {},
  fingerprint: 'a.b',
  idempotencyKey: 'old',
  callId: 'old',
};
const OLD_OPTIONS: JobOptions = { attempts: 2 };

async function doesOldJob(engine: JobEngine) {
  const store = new MemoryRunStore();
  store.jobs.addJob(OLD_JOB, OLD_OPTIONS);
  store.jobs.jobSent(OLD_JOB.id);
  const mail = backgroundTool('mail', { queue: 'mail' });
  const worker = await runJobs({ engine: opened(engine), store, tools: [mail.tool] });
  await until(() => mail.done.length === 1);
  await worker.close();
  expect(mail.done).toEqual(['old']);
}

describeRedis('runJobs on BullMQ over Redis', ({ url, newName }) => {
  const { hostname, port } = new URL(url);
  const connection = { host: hostname, port: Number(port) };
  testEngines((queue) => bullmqEngine({ connection, queue }), newName);

  test('runs a job that the previous version enqueued', async () => {
    const queue = newName();
    const broker = new Queue(queue, { connection });
    const old = { jobId: `job_${OLD_JOB.id}`, attempts: 2, removeOnComplete: { age: 86_400 } };
    await broker.add('mail', { job: OLD_JOB }, old);
    await broker.close();
    await doesOldJob(bullmqEngine({ connection, queue }));
  });
});

describePostgres('runJobs on PostgreSQL', ({ url, newName }) => {
  const [schema, bossSchema] = [newName(), newName()];
  const client = new pg.Client({ connectionString: url });

  beforeAll(async () => {
    await client.connect();
    await runMigrations(client, schema);
  });

  afterAll(async () => {
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.query(`DROP SCHEMA IF EXISTS ${bossSchema} CASCADE`);
    await client.end();
  });

  describe('with BullMQ', () => {
    const connection = { connectionString: url, schema, max: 3 };
    const open = (queue: string) =>
      bullmqEngine({ connection, backend: createPostgresBackend, queue, leaseMs: 1000 });
    testEngines(open, newName);
  });

  describe('with pg-boss', () => {
    const open = (queue: string) => pgBossEngine({ connection: url, schema: bossSchema, queue });
    testEngines(open, newName);

    test('runs a job that the previous version enqueued', async () => {
      const queue = newName();
      const boss = new PgBoss({ connectionString: url, schema: bossSchema });
      boss.on('error', () => {});
      await boss.start();
      await boss.createQueue(`${queue}_dead`);
      await boss.createQueue(queue, { heartbeatSeconds: 30, deadLetter: `${queue}_dead` });
      const hex = createHash('sha256').update(OLD_JOB.id).digest('hex');
      const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
      const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
      await boss.send(queue, { job: OLD_JOB, attempts: 2 }, { id, retryLimit: 11, priority: 0 });
      await boss.stop({ graceful: false });
      await doesOldJob(open(queue));
    });
  });
});

test('defineTool rejects an invalid `queue`', () => {
  for (const queue of ['', 'a/b', 'a:b', 'x'.repeat(65), 7 as never])
    expect(() => backgroundTool('mail', { queue })).toThrow(
      expect.objectContaining({
        code: 502,
        message: expect.stringContaining('background.queue: 1 to 64 letters'),
      }),
    );
});
