import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { bullmqEngine } from 'toolwright/bullmq';
import { describeRedis } from '../../services/services.js';
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

/** Stands before a Redis, and goes away with all connections. */
async function redisThatLeaves({ hostname, port }: URL) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
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
  return { connection: { host: '127.0.0.1', port: (server.address() as AddressInfo).port }, leave };
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
    const redis = await redisThatLeaves(new URL(url));
    const { first, logger } = listening();
    const engine = bullmqEngine({ connection: redis.connection, queue: newName(), logger });
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
    redis.leave();
    await first;
    end.resolve();
    await engine.close();
  });
});
