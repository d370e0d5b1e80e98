import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { defineTool, type JobCompletion, runJobs, runToolLoop } from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { PostgresRunStore } from 'toolwright/postgres';
import { ScriptedProvider } from 'toolwright/testing';
import { buildProgram } from '../processes/build-program.js';
import { NodeProcess } from '../processes/node-process.js';
import { describePostgres, describeRedis } from '../services/services.js';
import { ROOT } from '../structure/repository.js';

describeRedis('with Redis', (redis) => {
  describePostgres('and PostgreSQL', (postgres) => {
    const schema = postgres.newName();
    const program = buildProgram('test/flow/job-worker-program.ts');

    afterAll(async () => {
      program.remove();
      const client = new pg.Client({ connectionString: postgres.url });
      await client.connect();
      await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await client.end();
    });

    test('runJobs repeats the job of a killed worker with the same key, and completes it once', async () => {
      const queue = redis.newName();
      const { hostname, port } = new URL(redis.url);
      const connection = { host: hostname, port: Number(port) };
      const engine = bullmqEngine({ connection, queue, leaseMs: 1000 });
      await using store = new PostgresRunStore({ connectionString: postgres.url, schema });
      await store.migrate();
      const attempts: [number, string][] = [];
      const pay = defineTool({
        name: 'pay',
        description: 'Pays',
        background: true,
        execute: (_args, { attempt, idempotencyKey }) => {
          attempts.push([attempt, idempotencyKey]);
          return 'paid';
        },
      });
      const args = [program.file, redis.url, postgres.url, queue, schema];
      await using killed = new NodeProcess(args, { folder: ROOT, environment: process.env as never });
      await killed.waitFor(/working\./);
      const provider = new ScriptedProvider([
        { toolCalls: [{ name: 'pay', arguments: {} }] },
        { content: 'Started' },
      ]);
      const run = await runToolLoop({ provider, model: 'm', tools: [pay], engine, store }, [
        { role: 'user', content: 'Pay' },
      ]);
      const [, key = ''] = await killed.waitFor(/attempt 1 under (\S+)\./);
      await killed.kill();
      const completions: JobCompletion[] = [];
      const completed = Promise.withResolvers<void>();
      const worker = await runJobs({
        engine,
        store,
        tools: [pay],
        onAsyncResult: (completion) => {
          completions.push(completion);
          completed.resolve();
        },
      });
      await completed.promise;
      await worker.close();
      expect(attempts).toEqual([[2, key]]);
      expect(completions.map(({ result }) => result.forLLM)).toEqual(['paid']);
      const stored = await store.jobs.job(run.toolCalls[0]?.taskId ?? '');
      expect(stored).toMatchObject({ status: 'completed', attempt: 2, result: { forLLM: 'paid' } });
      await engine.close();
    });
  });
});
