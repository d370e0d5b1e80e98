import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createPostgresBackend, Queue, runMigrations } from 'bullmq';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { type Job, type JobEngine, MemoryJobEngine } from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { pgBossEngine } from 'toolwright/pg-boss';
import { type JobEngineBackend, jobEngineConformance } from 'toolwright/testing';
import { describePostgres, describeRedis } from '../../services/services.js';
import { WorkerProgram } from './worker-process.js';

const program = new WorkerProgram();

afterAll(() => program.remove());

function testAll(name: string, backend: JobEngineBackend): void {
  for (const { title, run } of jobEngineConformance(backend)) test(`${name} ${title}`, run);
}

const JOB: Job = {
  id: 'task_1',
  tool: 'send_mail',
  arguments: { to: 'ada@example.org' },
  scope: {},
  fingerprint: 'f1',
  idempotencyKey: 'key-1',
  callId: 'call_1',
};

/** Runs whatever waits, and resolves when so many jobs have begun. */
async function runJobsOf(engine: JobEngine, count: number): Promise<readonly string[]> {
  const begun: string[] = [];
  const all = Promise.withResolvers<void>();
  const worker = await engine.work({
    handle: async ({ id }) => {
      begun.push(id);
      if (begun.length === count) all.resolve();
    },
  });
  await all.promise;
  await worker.close();
  return begun;
}

describe('MemoryJobEngine', () => {
  const engines = new Map<string, MemoryJobEngine>();
  testAll('MemoryJobEngine', {
    open(queue) {
      const engine = engines.get(queue) ?? new MemoryJobEngine();
      engines.set(queue, engine);
      return engine;
    },
  });
});

describeRedis('bullmqEngine over Redis', ({ url, newName }) => {
  const { hostname, port } = new URL(url);
  const connection = { host: hostname, port: Number(port) };

  testAll('bullmqEngine over Redis', {
    open: (queue) => bullmqEngine({ connection, queue, leaseMs: 1000 }),
    startWorker: (queue) => program.start(['redis', url, queue]),
  });

  test('bullmqEngine takes a job again whose id BullMQ no longer knows: only a store knows it for good', async () => {
    const engine = bullmqEngine({ connection, queue: newName(), keepEndedMs: 0 });
    await engine.enqueue(JOB);
    await runJobsOf(engine, 1);
    await engine.enqueue(JOB);
    expect(await runJobsOf(engine, 1)).toEqual([JOB.id]);
    await engine.close();
  });

  test('bullmqEngine revives a job of which too many workers died, which BullMQ itself would fail again', async () => {
    const queue = newName();
    const engine = bullmqEngine({ connection, queue });
    await engine.enqueue(JOB);
    // As BullMQ does it when a job has lost its last worker.
    const broker = new Queue(queue, { connection });
    const client = await broker.getBackend().client;
    await client.hset(`bull:${queue}:job_${JOB.id}`, { defa: 'job stalled more than allowable limit' });
    await broker.close();
    const worker = await engine.work({ handle: async () => {} });
    while ((await engine.deadJobs()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await worker.close();
    expect(await engine.revive(JOB)).toBe(true);
    expect(await runJobsOf(engine, 1)).toEqual([JOB.id]);
    expect(await engine.deadJobs()).toEqual([]);
    await engine.close();
  });

  test('bullmqEngine says nothing of lost connections where it has no logger', async () => {
    const engine = bullmqEngine({ connection: { host: '127.0.0.1', port: 1, retryStrategy: () => null } });
    await expect(engine.enqueue(JOB)).rejects.toThrow();
    await engine.close().catch(() => {});
  });
});

describePostgres('bullmqEngine over PostgreSQL', ({ url, newName }) => {
  const schema = newName();
  const connection = { connectionString: url, schema, max: 3 };
  const client = new pg.Client({ connectionString: url });

  beforeAll(async () => {
    await client.connect();
    await runMigrations(client, schema);
  });

  afterAll(async () => {
    await client.query(`DROP SCHEMA ${schema} CASCADE`);
    await client.end();
  });

  testAll('bullmqEngine over PostgreSQL', {
    open: (queue) => bullmqEngine({ connection, backend: createPostgresBackend, queue, leaseMs: 1000 }),
    startWorker: (queue) => program.start(['postgres', url, queue, schema]),
  });

  test('bullmqEngine rejects, and says what to do, where the tables have not been made by hand', async () => {
    const missing = { ...connection, schema: newName() };
    const engine = bullmqEngine({ connection: missing, backend: createPostgresBackend });
    await expect(engine.enqueue(JOB)).rejects.toThrow(/is not initialized. Run the migrations/);
    await engine.close().catch(() => {});
  });
});

describePostgres('pgBossEngine', ({ url, newName }) => {
  const schema = newName();
  const place = { connection: url, schema, heartbeatSeconds: 10 };

  afterAll(async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
  });

  testAll('pgBossEngine', {
    open: (queue) => pgBossEngine({ ...place, queue }),
    startWorker: (queue) => program.start(['pg-boss', url, queue, schema]),
  });

  test('pgBossEngine sets a heartbeat on a queue that was made without one, as pg-boss makes them', async () => {
    await using boss = await startedBoss({ connectionString: url, schema });
    await boss.createQueue('old');
    const engine = pgBossEngine({ connection: boss, queue: 'old', heartbeatSeconds: 12 });
    await engine.enqueue(JOB);
    expect(await boss.getQueue('old')).toMatchObject({ heartbeatSeconds: 12, deadLetter: 'old_dead' });
    await engine.close();
    // The application's own goes on.
    expect(await boss.getQueue('old')).toMatchObject({ name: 'old' });
  });

  test('pgBossEngine commits what a job writes together with its end, or neither', async () => {
    await using boss = await startedBoss({ connectionString: url, schema });
    await boss.getDb().executeSql(`CREATE TABLE ${schema}.effects (job text)`);
    const engine = pgBossEngine({ connection: boss, queue: 'atomic', transactional: true });
    await engine.enqueue(JOB, { attempts: 2 });
    const ended = Promise.withResolvers<void>();
    const worker = await engine.work({
      handle: async ({ id }, { attempt, commit }) => {
        await commit?.(async ({ query }) => {
          await query(`INSERT INTO ${schema}.effects VALUES ($1)`, [`${id}, attempt ${attempt}`]);
          if (attempt === 1) throw new Error('after the write, before the end');
        });
        ended.resolve();
      },
    });
    await ended.promise;
    await worker.close();
    const { rows } = await boss.getDb().executeSql(`SELECT job FROM ${schema}.effects`);
    expect(rows).toEqual([{ job: 'task_1, attempt 2' }]);
    expect((await boss.findJobs('atomic')).map(({ state }) => state)).toEqual(['completed']);
    await engine.close();
  });

  test('pgBossEngine keeps no job among the dead ones that has failed here and is another worker’s by now', async () => {
    await using boss = await startedBoss({ connectionString: url, schema });
    const engine = pgBossEngine({ connection: boss, queue: 'lost' });
    await engine.enqueue(JOB);
    const failed = Promise.withResolvers<void>();
    const worker = await engine.work({
      handle: async () => {
        const [{ id } = { id: '' }] = await boss.findJobs('lost');
        await boss.complete('lost', id);
        failed.resolve();
        throw new Error('too late');
      },
    });
    await failed.promise;
    await worker.close();
    expect(await engine.deadJobs()).toEqual([]);
    await engine.close();
  });
});

/** The application's own, as long as the test takes. */
async function startedBoss(place: { readonly connectionString: string; readonly schema: string }) {
  const boss = new PgBoss(place);
  boss.on('error', () => {});
  await boss.start();
  return Object.assign(boss, { [Symbol.asyncDispose]: () => boss.stop({ graceful: false }) });
}
