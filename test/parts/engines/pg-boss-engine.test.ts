import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import type { JobAttempt } from 'toolwright';
import { pgBossEngine } from 'toolwright/pg-boss';
import { describePostgres } from '../../services/services.js';
import { JOB, testAll } from './engine-tests.js';
import { WorkerProgram } from './worker-process.js';

const program = new WorkerProgram();

afterAll(() => program.remove());

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

  test('pgBossEngine sets a heartbeat on a queue that was created without one, the default of pg-boss', async () => {
    await using boss = await startedBoss({ connectionString: url, schema });
    await boss.createQueue('old');
    const engine = pgBossEngine({ connection: boss, queue: 'old', heartbeatSeconds: 12 });
    await engine.enqueue(JOB);
    expect(await boss.getQueue('old')).toMatchObject({ heartbeatSeconds: 12, deadLetter: 'old_dead' });
    await engine.close();
    // The application's own PgBoss stays open.
    expect(await boss.getQueue('old')).toMatchObject({ name: 'old' });
  });

  test('pgBossEngine delivers a job that was given back at once, regardless of the retry delay', async () => {
    const engine = pgBossEngine({ ...place, queue: 'given-back' });
    await engine.enqueue(JOB, { attempts: 2, backoff: { type: 'exponential', delay: 3_600_000 } });
    const ended = Promise.withResolvers<number>();
    const worker = await engine.work({
      handle: async (_job, { attempt, giveBack }) => {
        if (attempt < 3) await giveBack();
        else ended.resolve(attempt);
      },
    });
    expect(await ended.promise).toBe(3);
    await worker.close();
    await engine.close();
  });

  test('pgBossEngine preserves the options and attempts of several jobs that are given back together', async () => {
    await using boss = await startedBoss({ connectionString: url, schema });
    const queue = 'given-back-together';
    const engine = pgBossEngine({ connection: boss, queue });
    const ids = ['one', 'two', 'three'];
    const options = { attempts: 3, priority: 7, backoff: { type: 'exponential', delay: 2_000 } } as const;
    for (const id of ids) await engine.enqueue({ ...JOB, id }, options);
    const kept = async () =>
      (await boss.findJobs(queue))
        .map(({ priority, retryDelay, retryBackoff }) => ({ priority, retryDelay, retryBackoff }))
        .slice(0, 3);
    const before = await kept();
    const begun = new Map<string, number[]>();
    const ended = Promise.withResolvers<void>();
    const worker = await engine.work({
      concurrency: 3,
      handle: async ({ id }, { attempt, isLast, giveBack }) => {
        begun.set(id, [...(begun.get(id) ?? []), attempt]);
        expect(isLast).toBe(false);
        if (attempt < 3) await giveBack({ delay: 100 });
        else if ([...begun.values()].every(({ length }) => length === 3)) ended.resolve();
      },
    });
    await ended.promise;
    await worker.close();
    expect([...begun]).toEqual(expect.arrayContaining(ids.map((id) => [id, [1, 2, 3]])));
    expect(await kept()).toEqual(before);
    await engine.close();
  });

  test('pgBossEngine commits the writes of a job together with its end, or neither', async () => {
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

  test('pgBossEngine uses up no attempt if a worker crashes or a job is given back', async () => {
    await using boss = await startedBoss({ connectionString: url, schema });
    const queue = 'deaths';
    const engine = pgBossEngine({ connection: boss, queue });
    await engine.enqueue(JOB, { attempts: 2 });
    const die = async () => {
      const [taken] = await boss.fetch(queue);
      // Like pg-boss with a job whose heartbeat has stopped.
      await boss.fail(queue, taken?.id ?? '', { value: { message: 'job heartbeat timeout' } });
    };
    const isLast: boolean[] = [];
    const handleOne = async (handle: (attempt: JobAttempt) => Promise<void>) => {
      const [begun, closing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const worker = await engine.work({
        handle: async (_job, attempt) => {
          isLast.push(attempt.isLast);
          begun.resolve();
          // The worker must not take a second job.
          await closing.promise;
          await handle(attempt);
        },
      });
      await begun.promise;
      const closed = worker.close();
      closing.resolve();
      await closed;
    };
    for (let deaths = 0; deaths < 3; deaths += 1) await die();
    await handleOne(() => Promise.reject(new Error('the first failure')));
    await die();
    for (let times = 0; times < 12; times += 1) await handleOne(({ giveBack }) => giveBack());
    await handleOne(() => Promise.reject(new Error('the second failure')));
    expect(isLast).toEqual([false, ...Array.from({ length: 13 }, () => true)]);
    expect(await engine.deadJobs()).toMatchObject([{ error: 'the second failure', attempts: 18 }]);
    await engine.close();
  });

  test('pgBossEngine reports a job that lost too many workers as such, and revives it with all attempts', async () => {
    await using boss = await startedBoss({ connectionString: url, schema });
    const queue = 'deadly';
    const engine = pgBossEngine({ connection: boss, queue });
    await engine.enqueue(JOB);
    for (let deaths = 0; deaths <= 10; deaths += 1) {
      const [taken] = await boss.fetch(queue);
      await boss.fail(queue, taken?.id ?? '', { value: { message: 'job heartbeat timeout' } });
    }
    expect(await engine.deadJobs({ jobIds: [JOB.id] })).toMatchObject([
      { job: JOB, attempts: 11, workersDied: true },
    ]);
    expect(await engine.revive(JOB)).toBe(true);
    const worker = await engine.work({ handle: () => Promise.reject(new Error('no paper')) });
    let dead = await engine.deadJobs();
    for (; dead.length === 0; dead = await engine.deadJobs())
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(dead).toMatchObject([{ error: 'no paper', attempts: 1, workersDied: false }]);
    await worker.close();
    await engine.close();
  });

  test('pgBossEngine does not list a failed job as dead if another worker has completed it', async () => {
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

/** A PgBoss of the application, for the duration of the test. */
async function startedBoss(place: { readonly connectionString: string; readonly schema: string }) {
  const boss = new PgBoss(place);
  boss.on('error', () => {});
  await boss.start();
  return Object.assign(boss, { [Symbol.asyncDispose]: () => boss.stop({ graceful: false }) });
}

test('pgBossEngine refuses a schema name that pg-boss could not create', () => {
  for (const schema of ['A-b', '1st', 'x'.repeat(51), ''])
    expect(() => pgBossEngine({ connection: 'postgres://127.0.0.1:1/none', schema })).toThrow(
      expect.objectContaining({ code: 521 }),
    );
});

test.each(['hello there', 'orders', 'postgress://u:secret@h/d', 'postgres:/h/d'])(
  'pgBossEngine refuses %j as the URL of a database, and does not show it',
  (connection) => {
    const open = () => pgBossEngine({ connection });
    expect(open).toThrow("connection: 'postgres://shop@127.0.0.1/shop', or new PgBoss({ … })");
    expect(open).not.toThrow(connection);
  },
);

test('pgBossEngine reports the problem of a database URL', () => {
  const open = (connection: string) => () => pgBossEngine({ connection });
  expect(open('localhost')).toThrow('connection must begin with postgres:// or postgresql://.');
  expect(open('postgres://h:99999/d')).toThrow('connection has the port 99999; the highest port is 65535');
  expect(open('postgres://u:secr?et@h/d')).toThrow("connection has a '?' before its host: in a password,");
});
