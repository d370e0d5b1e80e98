import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runMigrations } from 'bullmq';
import pg from 'pg';
import { defineTool, type JobEngine, runJobs, ToolRegistry } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { buildProgram } from '../processes/build-program.js';
import { NodeProcess } from '../processes/node-process.js';
import { describePostgres, describeRedis } from '../services/services.js';
import { ROOT } from '../structure/repository.js';
import { BULLMQ_LEASE_MS, openStarvedEngine, type StarvedPlace } from './starved-engines.js';

const ENGINES = ['BullMQ on Redis', 'BullMQ on PostgreSQL', 'pg-boss'] as const;

describeRedis('with Redis', (redis) => {
  describePostgres('and PostgreSQL', (postgres) => {
    const [schema, storeSchema] = [postgres.newName(), postgres.newName()];
    const program = buildProgram('test/flow/starved-worker-program.ts');
    const folder = mkdtempSync(join(tmpdir(), 'toolwright-starved-'));
    const client = new pg.Client({ connectionString: postgres.url });
    const store = new PostgresRunStore({ connectionString: postgres.url, schema: storeSchema });

    beforeAll(async () => {
      await client.connect();
      await Promise.all([runMigrations(client, schema), store.migrate()]);
    });

    afterAll(async () => {
      program.remove();
      rmSync(folder, { recursive: true });
      await store.close();
      for (const name of [schema, `${schema}_boss`, storeSchema])
        await client.query(`DROP SCHEMA IF EXISTS ${name} CASCADE`);
      await client.end();
    });

    /** Resolves when the lease of a worker that does not renew it has ended. */
    async function leaseEnded({ name, schema: place, queue }: StarvedPlace): Promise<void> {
      if (name !== 'pg-boss') return pause(3 * BULLMQ_LEASE_MS);
      // Leases of pg-boss take ten seconds or more, and it looks for expired ones every few seconds.
      const ended = `UPDATE ${place}.job SET heartbeat_on = now() - interval '1 hour' WHERE name = $1 AND state = 'active'`;
      while ((await client.query(ended, [queue])).rowCount !== 0) await pause(50);
    }

    interface Starved {
      readonly worker: NodeProcess;
      readonly engine: JobEngine;
      readonly place: StarvedPlace;
    }

    /** A worker that has begun its first attempt at a job. */
    async function starve(name: StarvedPlace['name'], awaited = ''): Promise<Starved> {
      const place: StarvedPlace = {
        name,
        url: name === 'BullMQ on Redis' ? redis.url : postgres.url,
        queue: redis.newName(),
        schema: name === 'pg-boss' ? `${schema}_boss` : schema,
      };
      const engine = openStarvedEngine(place);
      const args = [program.file, JSON.stringify(place), postgres.url, storeSchema, awaited];
      const worker = new NodeProcess(args, { folder: ROOT, environment: process.env as never });
      await worker.waitFor(/working\./);
      const tools = new ToolRegistry({ engine, store }).register(PAY);
      await tools.executeWithContext('pay', {}, { callId: place.queue });
      await worker.waitFor(/attempt 1\./);
      return { worker, engine, place };
    }

    async function expectPaid({ engine, place }: Starved): Promise<void> {
      const { jobs } = await store.jobs.listJobs();
      const stored = jobs.find(({ job }) => job.callId === place.queue);
      expect(stored).toMatchObject({ status: 'completed', result: { forLLM: 'paid' } });
      expect(await engine.deadJobs()).toEqual([]);
      await engine.close();
    }

    test.each(ENGINES)(
      'runJobs on %s does not fail an attempt that blocks the event loop for longer than the lease',
      async (name) => {
        const awaited = join(folder, name);
        const starved = await starve(name, awaited);
        await using worker = starved.worker;
        await leaseEnded(starved.place);
        writeFileSync(awaited, '');
        await worker.waitFor(/completed: paid\./);
        await expectPaid(starved);
      },
    );

    test.each(ENGINES)(
      'runJobs on %s gives a job to another worker if the process is stopped for longer than the lease',
      async (name) => {
        const starved = await starve(name);
        await using worker = starved.worker;
        worker.send('SIGSTOP');
        await leaseEnded(starved.place);
        const { engine } = starved;
        const completed = Promise.withResolvers<void>();
        const onAsyncResult = () => completed.resolve();
        const other = await runJobs({ engine, store, tools: [PAY], onAsyncResult });
        await completed.promise;
        worker.send('SIGCONT');
        await worker.waitFor(/aborted\./);
        await other.close();
        await expectPaid(starved);
        expect(worker.stdout).not.toContain('completed');
      },
    );
  });
});

const PAY = defineTool({
  name: 'pay',
  description: 'Pays',
  background: true,
  execute: () => 'paid',
});
