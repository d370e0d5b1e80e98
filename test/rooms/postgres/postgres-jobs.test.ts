import { expect, test } from '@jest/globals';
import { PgBoss } from 'pg-boss';
import { defineTool, runJobs, runToolLoop } from 'toolwright';
import { pgBossEngine } from 'toolwright/pg-boss';
import { PostgresRunStore } from 'toolwright/postgres';
import { ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { testJobs } from '../stores/job-store-cases.js';
import { TestSchemas } from './test-schema.js';

describePostgres('PostgresRunStore.jobs', (service) => {
  const schemas = new TestSchemas(service);

  testJobs('PostgresRunStore.jobs', () => {
    const schema = schemas.newSchema();
    const store = new PostgresRunStore({ connectionString: service.url, schema });
    return { jobs: store.jobs, wait: (ms) => schemas.ageJobs(schema, ms), close: () => store.close() };
  });

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
});
