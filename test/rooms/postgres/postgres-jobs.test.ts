import { expect, test } from '@jest/globals';
import { PgBoss } from 'pg-boss';
import { defineTool, type Job, runJobs, runToolLoop } from 'toolwright';
import { pgBossEngine } from 'toolwright/pg-boss';
import { PostgresRunStore } from 'toolwright/postgres';
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

  test('PostgresRunStore.jobs completes a job together with its end in the queue of pg-boss', async () => {
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
    // The same transaction wrote both.
    expect(rows).toEqual([{ is_one: true }]);
    await engine.close();
    await boss.stop({ graceful: false });
  });

  test('PostgresRunStore.jobs completes a job together with a transaction, or not at all', async () => {
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

  test('PostgresRunStore.jobs tells the truth where an answer is lost', async () => {
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
