import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PgBoss } from 'pg-boss';
import {
  Conversations,
  defineTool,
  type Job,
  type JobStore,
  runJobs,
  runToolLoop,
  ToolRegistry,
} from 'toolwright';
import { pgBossEngine } from 'toolwright/pg-boss';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore } from 'toolwright/stores';
import { jobStoreConformance, ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { LosingProxy } from './losing-proxy.js';
import { TestSchemas } from './test-schema.js';

const JOB: Job = {
  ...{ id: 'a', tool: 'mail', arguments: {}, scope: {} },
  ...{ fingerprint: 'f', idempotencyKey: 'k', callId: 'c' },
};
const result = (forLLM: string) => ({ forLLM, silent: false, isError: false, async: false });

describePostgres('PostgresRunStore.jobs', (service) => {
  const schemas = new TestSchemas(service);
  const open = (schema: string) => new PostgresRunStore({ connectionString: service.url, schema });

  const cases = jobStoreConformance({
    name: 'PostgresRunStore.jobs',
    open() {
      const schema = schemas.newSchema();
      const [store, other] = [open(schema), open(schema)];
      return {
        ...{ jobs: store.jobs, other: other.jobs, conversations: store.conversations },
        advance: (ms) => schemas.ageJobs(schema, ms),
        async close() {
          await store.close();
          await other.close();
        },
      };
    },
  });
  for (const { title, run } of cases) test(title, run);

  test('PostgresRunStore.jobs completes a job and its entry in the queue of pg-boss in one transaction', async () => {
    const [schema, bossSchema] = [schemas.newSchema(), schemas.newSchema()];
    await using store = new PostgresRunStore({ connectionString: service.url, schema });
    const boss = new PgBoss({ connectionString: service.url, schema: bossSchema });
    boss.on('error', () => {});
    const engine = pgBossEngine({ connection: boss, schema: bossSchema, transactional: true });
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    const ended = Promise.withResolvers<void>();
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'work', arguments: {} }] },
      { content: 'Done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools: [tool], engine, store }, [
      { role: 'user', content: 'Go' },
    ]);
    await engine.subscribe(({ type }) => {
      if (type === 'end') ended.resolve();
    });
    const worker = await runJobs({ engine, store, tools: [tool] });
    await ended.promise;
    await worker.close();
    const id = run.toolCalls[0]?.taskId ?? '';
    expect(await store.jobs.job(id)).toMatchObject({ status: 'completed', result: { forLLM: 'done' } });
    const { rows } = await schemas.pool.query(
      `SELECT queued.xmin = kept.xmin AS is_one
       FROM ${bossSchema}.job AS queued, ${schema}.jobs AS kept WHERE queued.state = 'completed'`,
    );
    // The same transaction wrote both rows.
    expect(rows).toEqual([{ is_one: true }]);
    await engine.close();
    await boss.stop({ graceful: false });
  });

  test('a worker logs a dropped result if the job was deleted while it ran', async () => {
    const [schema, bossSchema] = [schemas.newSchema(), schemas.newSchema()];
    await using store = open(schema);
    const engine = pgBossEngine({ connection: service.url, schema: bossSchema, transactional: true });
    const tool = defineTool({
      ...{ name: 'work', description: 'Works', background: true },
      execute: async () => {
        await schemas.pool.query(`DELETE FROM ${schema}.jobs`);
        return 'done';
      },
    });
    const provider = new ScriptedProvider([{ toolCalls: [{ name: 'work' }] }, { content: 'Begun' }]);
    const config = { provider, model: 'm', tools: [tool], engine, store };
    await runToolLoop(config, [{ role: 'user', content: 'Go' }]);
    const logged: string[] = [];
    const dropped = Promise.withResolvers<void>();
    const warn = (message: string) => {
      logged.push(message);
      dropped.resolve();
    };
    const info = (message: string) => message.includes('dropped') && warn(message);
    const logger = { debug() {}, verbose() {}, info, warn, error: warn };
    const worker = await runJobs({ engine, store, tools: [tool], logger });
    await dropped.promise;
    await worker.close();
    await engine.close();
    expect(logged).toEqual([
      'The result of a job was dropped, because its conversation or the job was deleted',
    ]);
  });

  test('PostgresRunStore.jobs completes a job only if the given transaction commits', async () => {
    const schema = schemas.newSchema();
    await using store = open(schema);
    await store.jobs.addJob(JOB, {});
    const client = await schemas.pool.connect();
    const transaction = {
      query: (text: string, values: readonly unknown[] = []) => client.query(text, [...values]),
    };
    for (const end of ['ROLLBACK', 'COMMIT']) {
      await client.query('BEGIN');
      expect(await store.jobs.completeJob('a', result(end), { transaction })).toBe(true);
      await client.query(end);
    }
    client.release();
    expect(await store.jobs.completeJob('a', result('later'))).toBe(false);
    expect((await store.jobs.job('a'))?.result?.forLLM).toBe('COMMIT');
  });

  test('PostgresRunStore.jobs sends many writes in one batch, and rejects only the invalid one', async () => {
    await using store = open(schemas.newSchema());
    const { jobs } = store;
    const ids = Array.from({ length: 250 }, (_, index) => `job ${index}`);
    const job = { tool: 't', arguments: {}, scope: {}, fingerprint: 'f', idempotencyKey: 'k', callId: 'c' };
    // PostgreSQL cannot store a NUL in text.
    const wrong = { ...job, id: 'job \u0000' };
    const adding = ids.map((id) => jobs.addJob({ ...job, id, arguments: { text: '\u0000\ud800"' } }, {}));
    const refused = Promise.resolve(jobs.addJob(wrong, {})).catch((error: Error) => error.message);
    expect(new Set(await Promise.all([...adding, jobs.addJob({ ...job, id: 'last' }, {})]))).toEqual(
      new Set([true]),
    );
    expect(await refused).toMatch(/unicode|0x00/i);
    expect(await Promise.all([ids[0], ids[0]].map((id = '') => jobs.addJob({ ...job, id }, {})))).toEqual([
      false,
      false,
    ]);
    const begun = await Promise.all([...ids, 'unknown'].map((id) => jobs.beginJob(id, 2)));
    expect(begun.filter(({ status }) => status === 'run')).toHaveLength(250);
    expect(begun.at(-1)).toEqual({ status: 'missing' });
    const result = { forLLM: 'done' } as never;
    const completed = await Promise.all([...ids, ...ids].map((id) => jobs.completeJob(id, result)));
    expect(completed.filter(Boolean)).toHaveLength(250);
    expect(await jobs.job('job 7')).toMatchObject({
      status: 'completed',
      attempt: 2,
      job: { arguments: { text: '\u0000\ud800"' } },
    });
  });

  test('PostgresRunStore.jobs returns the correct result if a response was lost', async () => {
    await using proxy = await LosingProxy.before(service.url);
    const place = { connectionString: proxy.through(service.url), schema: schemas.newSchema() };
    await using store = new PostgresRunStore(place);
    await store.migrate();
    const lost = async <Value>(work: () => Value): Promise<Awaited<Value>> => {
      proxy.loseNextAnswer();
      return await work();
    };
    const { jobs } = store;
    expect(await lost(() => jobs.addJob(JOB, {}))).toBe(true);
    expect(await jobs.addJob(JOB, {})).toBe(false);
    await lost(() => jobs.jobSent('a'));
    expect(await lost(() => jobs.beginJob('a', 2))).toEqual({ status: 'run' });
    expect(await lost(() => jobs.completeJob('a', result('done')))).toBe(true);
    expect(await lost(() => jobs.completeJob('a', result('again')))).toBe(false);
    expect(await lost(() => jobs.beginJob('a', 3))).toEqual({ status: 'settled', result: result('done') });
    expect(await jobs.job('a')).toMatchObject({ attempt: 2, status: 'completed' });
    expect(proxy.lost).toBe(6);
  });
});

test('a store without a database is refused with a transactional engine', async () => {
  const store = new MemoryRunStore();
  const engine = pgBossEngine({ connection: 'postgres://shop@127.0.0.1/shop', transactional: true });
  const config = { provider: new ScriptedProvider([]), model: 'm', tools: [] };
  const refused = /the engine is transactional, but the store is not in its database/;
  expect(() => new ToolRegistry({ engine, store })).toThrow(refused);
  expect(() => new Conversations({ engine, store, config })).toThrow(refused);
  await expect(runToolLoop({ ...config, engine, store }, [{ role: 'user', content: 'Go' }])).rejects.toThrow(
    refused,
  );
  await expect(runJobs({ engine, store, tools: [] })).rejects.toMatchObject({ code: 521 });
});

describePostgres('pgBossEngine with transactional, in another database than the store', (service) => {
  const name = service.newName();
  afterAll(() => schemas.pool.query(`DROP DATABASE ${name} WITH (FORCE)`));
  const schemas = new TestSchemas(service);
  const elsewhere = new URL(service.url);
  elsewhere.pathname = `/${name}`;

  beforeAll(() => schemas.pool.query(`CREATE DATABASE ${name}`));

  let works = 0;
  const tool = defineTool({
    name: 'work',
    description: 'Works',
    background: true,
    execute: () => {
      works += 1;
      return 'done';
    },
  });

  /** A job that was started on an engine in another database than its store. */
  async function startedElsewhere() {
    works = 0;
    const schema = schemas.newSchema();
    const store = new PostgresRunStore({ connectionString: service.url, schema });
    const engine = pgBossEngine({ connection: elsewhere.href, schema, transactional: true });
    const provider = new ScriptedProvider([{ toolCalls: [{ name: 'work' }] }, { content: 'Begun' }]);
    const config = { provider, model: 'm', tools: [tool], store, engine };
    const run = await runToolLoop(config, [{ role: 'user', content: 'Go' }]);
    const jobId = run.toolCalls[0]?.taskId ?? '';
    return {
      ...{ schema, store, engine, jobId },
      async [Symbol.asyncDispose]() {
        await engine.close();
        await store.close();
      },
    };
  }

  test('runJobs refuses it before any job runs, and Conversations logs an error', async () => {
    await using place = await startedElsewhere();
    const { store, engine, jobId } = place;
    await expect(runJobs({ engine, store, tools: [tool] })).rejects.toMatchObject({
      code: 521,
      message: expect.stringContaining('the store is in another database'),
    });
    const heard = Promise.withResolvers<unknown>();
    const logger = {
      ...{ debug() {}, verbose() {}, info() {}, warn() {} },
      error: (message: string) => heard.resolve(message),
    };
    const config = { provider: new ScriptedProvider([]), model: 'm', tools: [tool] };
    const conversations = new Conversations({ store, engine, config, logger });
    expect(await heard.promise).toMatch(
      /^No jobs are run in this process: .*the store is in another database/,
    );
    await conversations.close();
    expect(await store.jobs.job(jobId)).toMatchObject({ status: 'waiting', attempt: 0 });
    expect(works).toBe(0);
  });

  test.each([{ tables: 'without the tables of the store' }, { tables: 'with tables of the same names' }])(
    'a result that cannot be committed with its job is stored alone once, and this is logged: $tables',
    async ({ tables }) => {
      await using place = await startedElsewhere();
      const { schema, store, engine, jobId } = place;
      const hasTables = tables.startsWith('with tables');
      if (hasTables) {
        await using other = new PostgresRunStore({ connectionString: elsewhere.href, schema });
        await other.migrate();
      }
      // As a store does whose role may not read its own location.
      const jobs = new Proxy<JobStore>(store.jobs, {
        get(target, property: keyof JobStore) {
          if (property === 'isKeptIn') return () => true;
          return (target[property] as () => unknown).bind(target);
        },
      });
      const errors: string[] = [];
      const logger = {
        ...{ debug() {}, verbose() {}, info() {}, warn() {} },
        error: (message: string) => errors.push(message),
      };
      const ended = Promise.withResolvers<void>();
      await engine.subscribe(({ type }) => type === 'end' && ended.resolve());
      const worker = await runJobs({ engine, store: { jobs }, tools: [tool], logger });
      await ended.promise;
      await worker.close();
      expect(await store.jobs.job(jobId)).toMatchObject({ status: 'completed', result: { forLLM: 'done' } });
      expect(works).toBe(1);
      expect(await engine.deadJobs()).toEqual([]);
      expect(errors).toEqual([
        expect.stringMatching(
          /^A result could not be committed in one transaction with the end of its job; it was saved separately: ./,
        ),
      ]);
    },
  );
});
