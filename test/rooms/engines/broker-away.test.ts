import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import type { JobEngine } from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { pgBossEngine } from 'toolwright/pg-boss';
import { describePostgres, describeRedis } from '../../services/services.js';
import { JOB } from './engine-tests.js';

/** Nobody listens there. */
const NOWHERE = { host: '127.0.0.1', port: 1 };

function listening() {
  const heard: string[] = [];
  const first = Promise.withResolvers<void>();
  const ignore = () => {};
  const warn = (message: string) => {
    heard.push(message);
    first.resolve();
  };
  const logger = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore };
  return { heard, first: first.promise, logger };
}

/** Stands before a service: goes away with all connections, or keeps them and says nothing more. */
async function serviceThatLeaves({ hostname, port }: URL) {
  const sockets = new Set<Socket>();
  let isSilent = false;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {});
    if (isSilent) return;
    const behind = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => other.destroy());
      socket.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const leave = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  const fallSilent = () => {
    isSilent = true;
    for (const socket of sockets) socket.unpipe().resume();
  };
  const connection = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  return { connection, leave, fallSilent };
}

/** An engine with a job under way, and what ends that. */
async function atWork(engine: JobEngine) {
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  await engine.work({
    handle: () => {
      begun.resolve();
      return end.promise;
    },
  });
  await engine.enqueue(JOB);
  await begun.promise;
  return end;
}

describe('bullmqEngine without its broker', () => {
  test('closes, says what is away, and what waited for the broker is told so', async () => {
    const { heard, first, logger } = listening();
    const engine = bullmqEngine({ connection: NOWHERE, queue: 'orders', logger });
    const waited = [engine.enqueue(JOB), engine.work({ handle: async () => {} })];
    const outcomes = Promise.allSettled(waited);
    await first;
    await engine.close();
    expect(heard[0]).toBe("BullMQ, queue 'orders' in Redis at 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1");
    const closed = { status: 'rejected', reason: { message: expect.stringMatching(/closed/) } };
    expect(await outcomes).toMatchObject([closed, closed]);
    await expect(engine.enqueue(JOB)).rejects.toThrow('The engine of BullMQ was closed.');
  });
});

describeRedis('bullmqEngine whose Redis goes away', ({ url, newName }) => {
  test('closes, also while a job runs whose end cannot be told', async () => {
    const redis = await serviceThatLeaves(new URL(url));
    const { first, logger } = listening();
    const engine = bullmqEngine({ connection: redis.connection, queue: newName(), logger });
    const end = await atWork(engine);
    redis.leave();
    await first;
    end.resolve();
    await engine.close();
  });

  test('closes, also where Redis keeps its connections and says nothing', async () => {
    const redis = await serviceThatLeaves(new URL(url));
    const engine = bullmqEngine({ connection: redis.connection, queue: newName() });
    const end = await atWork(engine);
    redis.fallSilent();
    const outcome = Promise.allSettled([engine.enqueue({ ...JOB, id: 'other' })]);
    end.resolve();
    await engine.close();
    expect(await outcome).toMatchObject([{ status: 'rejected' }]);
    redis.leave();
  });
});

describePostgres('pgBossEngine whose PostgreSQL says nothing', ({ url, newName }) => {
  const schema = newName();
  const through = (port: number) => Object.assign(new URL(url), { hostname: '127.0.0.1', port }).href;

  afterAll(async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
  });

  test('closes where it never said anything, and what waited for it is told so', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    postgres.fallSilent();
    const engine = pgBossEngine({ connection: through(postgres.connection.port), schema, queue: newName() });
    const outcomes = Promise.allSettled([engine.enqueue(JOB), engine.work({ handle: async () => {} })]);
    await engine.close();
    expect(await outcomes).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
    postgres.leave();
  });

  test('closes while a job runs whose end cannot be told', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    const engine = pgBossEngine({ connection: through(postgres.connection.port), schema, queue: newName() });
    const end = await atWork(engine);
    postgres.fallSilent();
    end.resolve();
    await engine.close();
    postgres.leave();
  });

  test('closes beside a PgBoss of the application, whose connections stay', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    const connectionString = through(postgres.connection.port);
    const boss = new PgBoss({ connectionString, schema });
    boss.on('error', () => {});
    const engine = pgBossEngine({ connection: boss, queue: newName() });
    const end = await atWork(engine);
    postgres.fallSilent();
    end.resolve();
    await engine.close();
    postgres.leave();
    await boss.stop({ graceful: false });
  });
});
