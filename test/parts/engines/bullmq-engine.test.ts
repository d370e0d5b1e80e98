import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { createPostgresBackend, Queue, runMigrations } from 'bullmq';
import pg from 'pg';
import type { JobEngine } from 'toolwright';
import { type BullmqEngineOptions, bullmqEngine } from 'toolwright/bullmq';
import { describePostgres, describeRedis } from '../../services/services.js';
import { LosingProxy } from '../postgres/losing-proxy.js';
import { JOB, testAll } from './engine-tests.js';
import { HoldingProxy } from './holding-proxy.js';
import { WorkerProgram } from './worker-process.js';

const program = new WorkerProgram();

afterAll(() => program.remove());

/** Runs the waiting jobs, and resolves when so many have started. */
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

describeRedis('bullmqEngine over Redis', ({ url, newName }) => {
  const { hostname, port } = new URL(url);
  const connection = { host: hostname, port: Number(port) };

  test('bullmqEngine accepts a URL, and connects only to that address', async () => {
    const queue = newName();
    const engine = bullmqEngine({ connection: url, queue });
    await engine.enqueue(JOB);
    const other = bullmqEngine({ connection, queue });
    expect(await runJobsOf(other, 1)).toEqual([JOB.id]);
    const away = bullmqEngine({ connection: 'redis://127.0.0.1:1' });
    const asked = away.enqueue(JOB).then(
      () => 'taken',
      () => 'rejected',
    );
    await away.close();
    expect(await asked).toBe('rejected');
    await Promise.all([engine.close(), other.close()]);
  });

  testAll('bullmqEngine over Redis', {
    open: (queue) => bullmqEngine({ connection, queue, leaseMs: 3000 }),
    startWorker: (queue) => program.start(['redis', url, queue]),
  });

  test('bullmqEngine accepts a job id again after BullMQ has removed the job; only a store remembers it', async () => {
    const engine = bullmqEngine({ connection, queue: newName(), keepEndedMs: 0 });
    await engine.enqueue(JOB);
    await runJobsOf(engine, 1);
    await engine.enqueue(JOB);
    expect(await runJobsOf(engine, 1)).toEqual([JOB.id]);
    await engine.close();
  });

  test('bullmqEngine revives a job that lost too many workers, which BullMQ itself would fail again', async () => {
    const queue = newName();
    const engine = bullmqEngine({ connection, queue });
    await engine.enqueue(JOB);
    // Like BullMQ when a job has lost its last worker.
    const broker = new Queue(queue, { connection });
    const client = await broker.getBackend().client;
    await client.hset(`bull:${queue}:job_${JOB.id}`, { defa: 'job stalled more than allowable limit' });
    await broker.close();
    const worker = await engine.work({ handle: async () => {} });
    while ((await engine.deadJobs()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await worker.close();
    expect(await engine.deadJobs()).toMatchObject([{ job: JOB, workersDied: true }]);
    expect(await engine.revive(JOB)).toBe(true);
    expect(await runJobsOf(engine, 1)).toEqual([JOB.id]);
    expect(await engine.deadJobs()).toEqual([]);
    await engine.close();
  });

  test.each([{ jobIds: [JOB.id] }, {}])(
    'bullmqEngine does not report a job as dead that another process revives in the meantime (%j)',
    async (query) => {
      const queue = newName();
      const engine = bullmqEngine({ connection, queue });
      await engine.enqueue(JOB);
      const worker = await engine.work({ handle: () => Promise.reject(new Error('no paper')) });
      while ((await engine.deadJobs()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      await worker.close();
      // A process that is delayed between listing the dead jobs and reading one of them.
      await using proxy = await HoldingProxy.before(connection, /hgetall/i);
      const slow = bullmqEngine({ connection: { host: connection.host, port: proxy.port }, queue });
      const dead = slow.deadJobs(query);
      await proxy.holding;
      expect(await engine.revive(JOB)).toBe(true);
      proxy.letGo();
      expect(await dead).toEqual([]);
      await Promise.all([engine.close(), slow.close()]);
    },
  );

  test('bullmqEngine without a logger does not log lost connections', async () => {
    const outputs = (['error', 'warn', 'info', 'log'] as const).map((name) =>
      jest.spyOn(console, name).mockImplementation(() => {}),
    );
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const engine = bullmqEngine({ connection: { host: '127.0.0.1', port: 2, retryStrategy: () => null } });
    await expect(engine.enqueue(JOB)).rejects.toThrow(/ECONNREFUSED|Connection is closed/);
    await engine.close().catch(() => {});
    const lines = [...outputs, warned].flatMap((output) => output.mock.calls);
    jest.restoreAllMocks();
    expect(lines).toEqual([]);
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
    open: (queue) => bullmqEngine({ connection, backend: createPostgresBackend, queue, leaseMs: 3000 }),
    startWorker: (queue) => program.start(['postgres', url, queue, schema]),
  });

  test('bullmqEngine without migrated tables rejects, and states what to do', async () => {
    const missing = { ...connection, schema: newName() };
    const engine = bullmqEngine({ connection: missing, backend: createPostgresBackend });
    await expect(engine.enqueue(JOB)).rejects.toThrow(/is not initialized. Run the migrations/);
    await engine.close().catch(() => {});
  });

  // The first answers: of connecting, checking the tables, naming the connection, and more.
  test.each(Array.from({ length: 12 }, (_, count) => count))(
    'bullmqEngine recovers if a connection is lost before answer %s',
    async (count) => {
      await using proxy = await LosingProxy.before(url);
      const cut = { connectionString: proxy.through(url), schema, max: 3 };
      const engine = bullmqEngine({ connection: cut, backend: createPostgresBackend, queue: newName() });
      proxy.loseAnswerAfter(count);
      await again(() => engine.enqueue(JOB));
      await again(() => engine.cancel(JOB.id));
      const worker = await again(() => engine.work({ handle: async () => {} }));
      await worker.close();
      await engine.close();
    },
  );

  test.each(Array.from({ length: 12 }, (_, count) => count))(
    'bullmqEngine recovers if PostgreSQL ends a connection with answer %s, before its error has a listener',
    async (count) => {
      await using proxy = await LosingProxy.before(url);
      const ended = { connectionString: proxy.through(url), schema, max: 3 };
      const engine = bullmqEngine({ connection: ended, backend: createPostgresBackend, queue: newName() });
      const ending = proxy
        .holdUntilEnded(count)
        .then((port) =>
          client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_port = $1', [
            port,
          ]),
        );
      await again(() => engine.enqueue(JOB));
      const worker = await again(() => engine.work({ handle: async () => {} }));
      await ending;
      await worker.close();
      await engine.close();
    },
  );

  test('bullmqEngine can publish more messages than BullMQ stores', async () => {
    const engine = bullmqEngine({ connection, backend: createPostgresBackend, queue: newName() });
    let left = 10_010;
    const publish = async () => {
      while (left-- > 0) await engine.publish({ type: 'end', jobId: `job-${left}` });
    };
    await Promise.all(Array.from({ length: 20 }, publish));
    await engine.close();
  }, 120_000);

  test('bullmqEngine survives the loss of a connection that an application’s pool had opened before', async () => {
    await using proxy = await LosingProxy.before(url);
    const pool = new pg.Pool({ connectionString: proxy.through(url), max: 3 });
    await pool.query('SELECT 1');
    proxy.loseNextAnswer();
    const engine = bullmqEngine({ connection: pool, backend: createPostgresBackend, queue: newName() });
    await expect(engine.enqueue(JOB)).rejects.toThrow('Connection terminated');
    expect(proxy.lost).toBe(1);
    await engine.close();
    await pool.end();
  });
});

const REDIS_FIX = "connection: 'redis://127.0.0.1:6379'";

test.each<[unknown, string]>([
  [
    { hots: '10.0.0.7' },
    'connection.hots is not an option of a connection to Redis (did you mean `connection.host`?)',
  ],
  [
    { hostname: '10.0.0.7', port: 6379 },
    "connection.hostname is not an option of a connection to Redis.\n   Write instead: host: '127.0.0.1'",
  ],
  [{ host: '10.0.0.7', pasword: 'secret' }, 'did you mean `connection.password`?'],
  [{ host: undefined, port: 6379 }, 'connection.host is undefined'],
  [{ host: '', port: 'abc' }, "connection.port is 'abc'"],
  [{ port: Number.NaN }, 'connection.port is NaN'],
  [{ url: 'http://10.0.0.7' }, 'connection.url must begin with redis:// or rediss://, not with http://'],
  [{}, 'connection does not contain the address of the broker'],
  [{ socket: { host: '10.0.0.7' } }, 'connection.socket is not an option'],
  [{ password: 'secret', db: 2 }, 'connection does not contain the address of the broker'],
  [new URL('redis://:secret@10.0.0.7'), 'connection does not contain the address of the broker'],
  [new pg.Pool(), 'connection does not contain the address of the broker'],
  [[], REDIS_FIX],
  ['', 'connection is empty'],
  ['localhost:6379', 'connection must begin with redis:// or rediss://'],
  ['http://10.0.0.7', 'connection must begin with redis:// or rediss://, not with http://'],
  ['postgres://10.0.0.7/d', 'or a PostgreSQL connection with backend: createPostgresBackend'],
  ['redis://10.0.0.7:99999', 'connection has the port 99999; the highest port is 65535'],
  ['redis://', 'connection names no host'],
  ['redis://:sec#ret@10.0.0.7', "connection has a '#' before its host: in a password, '#' is written %23"],
])('bullmqEngine refuses the connection %j, and reports the problem', (connection, problem) => {
  const open = () => bullmqEngine({ connection });
  expect(open).toThrow(problem);
  expect(open).toThrow(expect.objectContaining({ code: 521 }));
  expect(open).not.toThrow(/secret|sec#ret/);
});

test.each<[unknown, string]>([
  [{ hots: 'db', database: 'd' }, 'did you mean `connection.host`?'],
  [{ host: 'db', username: 'app' }, 'Write instead: user: …'],
  [{ connectionString: undefined }, 'connection.connectionString is undefined'],
  [{ connectionString: 'db.internal' }, 'connection.connectionString must begin with postgres://'],
  [{ connectionString: 'postgres://u:se/cret@db/d' }, "has a '/' before its host"],
  ['redis://10.0.0.7', 'must begin with postgres:// or postgresql://, not with redis://'],
  [new URL('postgres://db/d'), 'connection does not contain the address of the broker'],
])('bullmqEngine on PostgreSQL reports the problem of the connection %j', (connection, problem) => {
  const open = () => bullmqEngine({ connection, backend: createPostgresBackend });
  expect(open).toThrow(problem);
  expect(open).not.toThrow('se/cret');
});

test.each<Omit<BullmqEngineOptions, 'queue'>>([
  { connection: 'redis://127.0.0.1:1' },
  { connection: 'rediss://user:p%23w@127.0.0.1:1/2' },
  { connection: { host: '127.0.0.1', port: '1', username: undefined, password: undefined } },
  { connection: { path: '/run/redis.sock' } },
  { connection: { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'shop' } },
  { connection: { host: '127.0.0.1', optionOfTheNextVersion: true } },
  { connection: { connect() {}, disconnect() {}, duplicate() {} } },
  { connection: 'postgres://u:p%23w@127.0.0.1:1/d', backend: createPostgresBackend },
  { connection: { schema: 'bull' }, backend: createPostgresBackend },
])('bullmqEngine accepts %j', async (options) => {
  await expect(bullmqEngine(options).close()).resolves.toBeUndefined();
});

test('bullmqEngine accepts every option of ioredis and of a pg pool', () => {
  const redis = namesIn(
    'ioredis/built/redis/RedisOptions.d.ts',
    'ioredis/built/connectors/SentinelConnector/index.d.ts',
  );
  const pool = namesIn('@types/pg/index.d.ts');
  expect(redis).toContain('retryStrategy');
  expect(pool).toContain('idleTimeoutMillis');
  for (const name of redis) {
    const connection = { host: 'h', [name]: name === 'sentinels' ? [] : '1' };
    expect(() => bullmqEngine({ connection })).not.toThrow();
  }
  for (const name of pool) {
    const connection = { host: 'h', [name]: name === 'connectionString' ? 'postgres://h/d' : '1' };
    expect(() => bullmqEngine({ connection, backend: createPostgresBackend })).not.toThrow();
  }
});

/** The options in the type declarations of a package. */
function namesIn(...paths: readonly string[]): readonly string[] {
  const declared = paths.map((path) => readFileSync(join('node_modules', path), 'utf8'));
  return declared.flatMap((text) => Array.from(text.matchAll(/^ {4}(\w+)\?: /gm), ([, name = '']) => name));
}

/** Repeats what failed because of a lost connection, as callers do. */
async function again<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch {
    return work();
  }
}
