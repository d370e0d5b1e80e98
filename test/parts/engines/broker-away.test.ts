import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { Conversations, defineTool, type JobEngine, runJobs, runToolLoop } from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { pgBossEngine } from 'toolwright/pg-boss';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { hidePackage } from '../../processes/hide-package.js';
import { describePostgres, describeRedis } from '../../services/services.js';
import { ROOT } from '../../structure/repository.js';
import { JOB } from './engine-tests.js';

/** No process listens on this port. */
const NOWHERE = { host: '127.0.0.1', port: 1 };

function listening() {
  const heard: string[] = [];
  const first = Promise.withResolvers<void>();
  const events = new EventEmitter();
  const errors: string[] = [];
  const ignore = () => {};
  const warn = (message: string) => {
    heard.push(message);
    first.resolve();
    events.emit('heard');
  };
  const error = (message: string) => {
    errors.push(message);
    warn(message);
  };
  const logger = { error, warn, info: ignore, debug: ignore, verbose: ignore };
  /** Resolves when so many messages were logged. */
  const count = async (wanted: number) => {
    while (heard.length < wanted) await once(events, 'heard');
    return heard.slice(0, wanted);
  };
  return { heard, errors, first: first.promise, logger, count };
}

/** A proxy in front of a service that can close all connections, or leave them open without responding. */
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
  const comeBack = async () => {
    server.listen(connection.port, '127.0.0.1');
    await once(server, 'listening');
  };
  const fallSilent = () => {
    isSilent = true;
    for (const socket of sockets) socket.unpipe().resume();
  };
  const connection = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  return { connection, leave, comeBack, fallSilent };
}

/** Starts a job in an engine, and returns the function that ends the job. */
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
  test('closes, logs what is unreachable, and rejects pending requests', async () => {
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

describe.each([
  [
    'BullMQ',
    "BullMQ, queue 'orders' in Redis at 127.0.0.1:1",
    (queue: string) => bullmqEngine({ connection: NOWHERE, queue }),
  ],
  [
    'pg-boss',
    "pg-boss, queue 'orders' in PostgreSQL at 127.0.0.1:1/shop",
    (queue: string) => pgBossEngine({ connection: 'postgres://shop@127.0.0.1:1/shop', queue }),
  ],
])('a process that only enqueues, whose %s is unreachable', (_, name, open) => {
  const line = `${name} does not answer; background work waits until it does: connect ECONNREFUSED 127.0.0.1:1`;
  const tools = [defineTool({ name: 'mail', description: 'Mails', background: true, execute: () => 'sent' })];
  const config = () => ({
    provider: new ScriptedProvider([
      { toolCalls: [{ name: 'mail', arguments: {} }] },
      { content: 'Started' },
    ]),
    model: 'm',
    tools,
  });
  const run = async (options: object) => {
    const store = new MemoryRunStore();
    await runToolLoop({ ...config(), store, ...options }, [{ role: 'user', content: 'Go' }]);
    expect((await store.jobs.listJobs({})).jobs).toMatchObject([{ status: 'waiting' }]);
  };

  afterEach(() => {
    jest.restoreAllMocks();
  });

  test('logs one line a minute to the logger of the run, or to the console', async () => {
    const written = jest.spyOn(console, 'error').mockImplementation(() => {});
    const { errors, logger } = listening();
    const engine = open('orders');
    await run({ engine, logger });
    await run({ engine, logger });
    expect(errors).toEqual([line]);
    expect(written.mock.calls).toEqual([]);
    await run({ engine });
    await run({ engine });
    expect(written.mock.calls).toEqual([[`toolwright: ${line}`]]);
    await engine.close();
  });

  test('logs to the logger of Conversations that run no jobs', async () => {
    const { errors, logger } = listening();
    const [engine, store] = [open('orders'), new MemoryRunStore()];
    const conversations = new Conversations({ store, engine, jobConcurrency: 0, logger, config: config() });
    await conversations.prompt('c1', 'Go');
    await conversations.idle('c1');
    await conversations.close();
    await engine.close();
    expect(errors).toEqual([line]);
  });

  test('logs one line if the process also runs jobs', async () => {
    const written = jest.spyOn(console, 'error').mockImplementation(() => {});
    const [engine, store] = [open('parcels'), new MemoryRunStore()];
    const conversations = new Conversations({ store, engine, config: config() });
    await conversations.prompt('c1', 'Go');
    await conversations.idle('c1');
    await pause(1_500);
    await conversations.close({ timeoutMs: 100 });
    await engine.close();
    expect(written.mock.calls).toEqual([[`toolwright: ${line.replace('orders', 'parcels')}`]]);
  });
});

describe('a process whose engine lacks a package', () => {
  test('logs that the package is missing if it only enqueues', async () => {
    const program = `
      import { defineTool, runToolLoop } from 'toolwright';
      import { bullmqEngine } from 'toolwright/bullmq';
      import { MemoryRunStore } from 'toolwright/stores';
      import { ScriptedProvider } from 'toolwright/testing';
      const tools = [defineTool({ name: 'mail', description: 'Mails', background: true, execute: () => 'sent' })];
      const provider = new ScriptedProvider([{ toolCalls: [{ name: 'mail', arguments: {} }] }, { content: 'Started' }]);
      const engine = bullmqEngine({ connection: 'redis://127.0.0.1:1' });
      await runToolLoop({ provider, model: 'm', tools, engine, store: new MemoryRunStore() }, [{ role: 'user', content: 'Go' }]);
      await engine.close({ timeoutMs: 100 });`;
    const args = ['--import', hidePackage('ioredis'), '--input-type=module', '--eval', program];
    const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
    expect(stderr).toMatch(
      /^toolwright: BullMQ, queue 'toolwright' in Redis at 127\.0\.0\.1:1 does not answer; background work waits until it does: [^\n]*'ioredis'[^\n]*\n$/,
    );
  });
});

describeRedis('bullmqEngine whose Redis becomes unreachable', ({ url, newName }) => {
  test('closes while a running job cannot report its end', async () => {
    const redis = await serviceThatLeaves(new URL(url));
    const { first, logger } = listening();
    const engine = bullmqEngine({ connection: redis.connection, queue: newName(), logger });
    const end = await atWork(engine);
    redis.leave();
    await first;
    end.resolve();
    await engine.close();
  });

  test('closes if Redis keeps its connections open without responding', async () => {
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

describeRedis('a process that closes a bullmqEngine', ({ url, newName }) => {
  /** Runs the program until nothing keeps its process alive. */
  const run = (work: string) => {
    const program = `
      import { once } from 'node:events';
      import { connect, createServer } from 'node:net';
      import { setTimeout as pause } from 'node:timers/promises';
      import { bullmqEngine } from 'toolwright/bullmq';
      const sockets = new Set();
      const server = createServer((client) => {
        const behind = connect(${new URL(url).port}, '${new URL(url).hostname}');
        for (const [socket, other] of [[client, behind], [behind, client]]) {
          sockets.add(socket);
          socket.on('error', () => {}).on('close', () => other.destroy()).pipe(other);
        }
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const connection = { host: '127.0.0.1', port: server.address().port };
      const logger = { error() {}, warn() {}, info() {}, debug() {}, verbose() {} };
      const engine = bullmqEngine({ connection, queue: '${newName()}', logger });
      const leave = () => {
        server.close();
        for (const socket of sockets) socket.destroy();
      };
      ${work}
      console.log(String(performance.now() - begun));
      server.close();`;
    const args = ['--input-type=module', '--eval', program];
    return promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: 18_000 });
  };

  test.each([
    ['of a worker', 'await engine.work({ handle: async () => {} });'],
    ['of a queue', "await engine.enqueue({ id: 'j', tool: 't', arguments: {}, scope: {} });"],
  ])('exits soon if the Redis %s is gone', async (_, use) => {
    const { stdout } = await run(`
      ${use}
      await pause(300);
      leave();
      await pause(300);
      const begun = performance.now();
      await engine.close();`);
    expect(Number(stdout)).toBeLessThan(3_500);
  });

  test.each([
    ['work', 'engine.work({ handle: async () => {} })'],
    ['publish', "engine.publish({ type: 'end', jobId: 'j' })"],
  ])('exits if %s was called just before', async (_, use) => {
    await run(`
      const begun = performance.now();
      const before = Promise.allSettled([${use}]);
      const closing = engine.close();
      await new Promise(setImmediate);
      await Promise.allSettled([engine.publish({ type: 'end', jobId: 'k' }), before, closing]);`);
  });
});

/** Longer than any limit here, shorter than an engine without a limit waits for its broker. */
const MUCH_LATER_MS = 4_000;

interface Closable {
  close(options: { readonly timeoutMs: number }): Promise<void>;
}

/** Whether a busy object whose connections do not respond closes in time. */
function closesInTime(opened: Closable): Promise<boolean> {
  const closed = opened.close({ timeoutMs: 300 }).then(() => true);
  return Promise.race([closed, pause(MUCH_LATER_MS, false)]);
}

describeRedis('JobEngine.close with a limit', ({ url, newName }) => {
  test('closes connections to an unresponsive Redis, and abandons a running job', async () => {
    const redis = await serviceThatLeaves(new URL(url));
    const engine = bullmqEngine({ connection: redis.connection, queue: newName() });
    await atWork(engine);
    redis.fallSilent();
    expect(await closesInTime(engine)).toBe(true);
    redis.leave();
  });
});

describeRedis('runJobs whose Redis is unreachable', ({ url, newName }) => {
  const begin = (engine: JobEngine, logger?: ReturnType<typeof listening>['logger']) =>
    runJobs({ engine, store: new MemoryRunStore(), tools: [], ...(logger ? { logger } : {}) });

  test('logs once that Redis is unreachable and once that it is back, at the start and later', async () => {
    const redis = await serviceThatLeaves(new URL(url));
    redis.leave();
    const queue = newName();
    const { heard, logger, count } = listening();
    const engine = bullmqEngine({ connection: redis.connection, queue });
    const beginning = begin(engine, logger);
    const place = `BullMQ, queue '${queue}' in Redis at 127.0.0.1:${redis.connection.port}`;
    await count(1);
    await pause(500);
    expect(heard).toEqual([
      `${place} does not answer; background work waits until it does: connect ECONNREFUSED 127.0.0.1:${redis.connection.port}`,
    ]);
    await redis.comeBack();
    const runner = await beginning;
    await count(2);
    redis.leave();
    await count(3);
    await redis.comeBack();
    await count(4);
    expect(heard.map((line) => line.slice(place.length, place.length + 16))).toEqual([
      ' does not answer',
      ' answers again',
      ' does not answer',
      ' answers again',
    ]);
    await runner.close();
    await engine.close();
    redis.leave();
    expect(heard).toHaveLength(4);
  });

  test('logs to the console without a logger, and to the logger of the engine if it has one', async () => {
    const redis = await serviceThatLeaves(new URL(url));
    redis.leave();
    const written = jest.spyOn(console, 'error').mockImplementation(() => {});
    const back = Promise.withResolvers<void>();
    const recovered = jest.spyOn(console, 'warn').mockImplementation(() => back.resolve());
    const engine = bullmqEngine({ connection: redis.connection, queue: newName() });
    const { heard, logger, first } = listening();
    const logged = bullmqEngine({ connection: redis.connection, queue: newName(), logger });
    const beginnings = [begin(engine), begin(logged)];
    await first;
    await pause(2_000);
    const place = "BullMQ, queue '\\w+' in Redis at [\\d.:]+";
    expect(written.mock.calls).toEqual([
      [expect.stringMatching(`^toolwright: ${place} does not answer; .*: connect ECONNREFUSED `)],
    ]);
    expect(heard).toEqual([expect.stringMatching(`^${place}: connect ECONNREFUSED `)]);
    await redis.comeBack();
    const runners = await Promise.all(beginnings);
    await back.promise;
    for (const runner of runners) await runner.close();
    await Promise.all([engine.close(), logged.close()]);
    expect(recovered.mock.calls).toEqual([[expect.stringMatching(`^toolwright: ${place} answers again$`)]]);
    jest.restoreAllMocks();
    redis.leave();
  });

  test('logs errors of a reachable engine without reporting it as unreachable', async () => {
    const { count, logger } = listening();
    const queue = newName();
    const engine = bullmqEngine({ connection: { url }, queue });
    const runner = await begin(engine, logger);
    await engine.subscribe(() => {
      throw new Error('a listener that throws');
    });
    await engine.publish({ type: 'end', jobId: 'j1' });
    const [first] = await count(1);
    expect(first).toMatch(/^BullMQ, queue '\w+' in Redis[^:]*: a listener that throws$/);
    await runner.close();
    await engine.close();
  });
});

describePostgres('pgBossEngine whose PostgreSQL is unreachable', ({ url, newName }) => {
  const [schema, storeSchema] = [newName(), newName()];
  const through = (port: number) => Object.assign(new URL(url), { hostname: '127.0.0.1', port }).href;

  afterAll(async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.query(`DROP SCHEMA IF EXISTS ${storeSchema} CASCADE`);
    await client.end();
  });

  test('logs to the runner of jobs once that it is unreachable and once that it is back', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    const queue = newName();
    const { heard, logger, count } = listening();
    const engine = pgBossEngine({ connection: through(postgres.connection.port), schema, queue });
    const runner = await runJobs({ engine, store: new MemoryRunStore(), tools: [], logger });
    postgres.leave();
    await count(1);
    await pause(1_500);
    await postgres.comeBack();
    await count(2);
    await runner.close();
    await engine.close();
    postgres.leave();
    const place = new RegExp(
      `^pg-boss, queue '${queue}' in PostgreSQL at [^:@]+:\\d+/\\w+ (does not answer; .*: |answers again$)`,
    );
    expect(heard).toEqual([expect.stringMatching(place), expect.stringMatching(place)]);
  });

  test('closes if it never responded, and rejects pending requests', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    postgres.fallSilent();
    const engine = pgBossEngine({ connection: through(postgres.connection.port), schema, queue: newName() });
    const outcomes = Promise.allSettled([engine.enqueue(JOB), engine.work({ handle: async () => {} })]);
    await engine.close();
    expect(await outcomes).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
    postgres.leave();
  });

  test('closes while a running job cannot report its end', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    const engine = pgBossEngine({ connection: through(postgres.connection.port), schema, queue: newName() });
    const end = await atWork(engine);
    postgres.fallSilent();
    end.resolve();
    await engine.close();
    postgres.leave();
  });

  test('waits for a running job while closing, even if PostgreSQL is briefly unreachable', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    const engine = pgBossEngine({ connection: through(postgres.connection.port), schema, queue: newName() });
    const end = await atWork(engine);
    postgres.leave();
    await pause(2_000);
    const closing = engine.close();
    await pause(500);
    await postgres.comeBack();
    expect(await Promise.race([closing, pause(3_000, 'waits')])).toBe('waits');
    end.resolve();
    await closing;
    postgres.leave();
  });

  test('closes within a limit, and abandons a running job', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    const engine = pgBossEngine({ connection: through(postgres.connection.port), schema, queue: newName() });
    await atWork(engine);
    postgres.fallSilent();
    expect(await closesInTime(engine)).toBe(true);
    postgres.leave();
  });

  test('does not prevent Conversations, the engine and the store from closing within a limit', async () => {
    const postgres = await serviceThatLeaves(new URL(url));
    const connectionString = through(postgres.connection.port);
    const store = new PostgresRunStore({ connectionString, schema: storeSchema });
    const engine = pgBossEngine({ connection: connectionString, schema, queue: newName() });
    const [called, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const never = new Promise<never>(() => {});
    const hold = (heard: PromiseWithResolvers<void>) => () => {
      heard.resolve();
      return never;
    };
    const tools = [
      defineTool({ name: 'start', description: 'Starts', background: true, execute: hold(begun) }),
      defineTool({ name: 'call', description: 'Calls', execute: hold(called) }),
    ];
    const toolCalls = tools.map(({ name }) => ({ name, arguments: {} }));
    const config = { provider: new ScriptedProvider([{ toolCalls }]), model: 'm', tools };
    const conversations = new Conversations({ store, engine, config });
    await conversations.prompt('c1', 'Begin');
    await Promise.all([called.promise, begun.promise]);
    postgres.fallSilent();
    expect(await closesInTime(conversations)).toBe(true);
    expect(await closesInTime(engine)).toBe(true);
    expect(await closesInTime(store)).toBe(true);
    postgres.leave();
  });

  test('closes if it shares a PgBoss of the application, whose connections stay open', async () => {
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
