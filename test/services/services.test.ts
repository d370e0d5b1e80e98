import { execFile, spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import { describePostgres, describeRedis, postgres } from './services.js';

const { skippedLine } = (await import('./skipped-services.mjs' as string)) as {
  skippedLine(results: unknown): string | undefined;
};

describePostgres('the PostgreSQL of the tests', (service) => {
  test('allows each suite to create a schema with a unique name', async () => {
    const client = new pg.Client({ connectionString: service.url });
    await client.connect();
    const schema = service.newName();
    await client.query(
      `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.t (id int); DROP SCHEMA ${schema} CASCADE`,
    );
    await client.end();
    expect(service.newName()).not.toBe(schema);
  });

  test('has a database created for this run, if the user may create databases', async () => {
    const client = new pg.Client({ connectionString: service.url });
    await client.connect();
    const query = `SELECT current_database() ~ '^toolwright_test_' AS own, rolcreatedb OR rolsuper AS may
      FROM pg_roles WHERE rolname = current_user`;
    const { rows } = await client.query<{ own: boolean; may: boolean }>(query);
    await client.end();
    expect(rows).toEqual([{ own: rows[0]?.may, may: rows[0]?.may }]);
  });
});

describeRedis('the Redis of the tests', (service) => {
  test('responds to PING', async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write('PING\r\n');
    const [reply] = await new Promise<Buffer[]>((resolve) => socket.once('data', (...data) => resolve(data)));
    socket.destroy();
    // A Redis with a password responds with an error.
    expect(String(reply)).toMatch(/^[+-]/);
  });
});

test('an empty variable in the environment means that there is no service', () => {
  const before = process.env.TOOLWRIGHT_TEST_POSTGRES;
  process.env.TOOLWRIGHT_TEST_POSTGRES = '';
  try {
    expect(postgres()).toBeUndefined();
  } finally {
    process.env.TOOLWRIGHT_TEST_POSTGRES = before;
  }
});

test('a missing service is an error with its name if TOOLWRIGHT_REQUIRE_SERVICES is 1', async () => {
  const { default: findServices } = (await import('./find-services.mjs' as string)) as {
    default(): Promise<void>;
  };
  const before = { ...process.env };
  try {
    Object.assign(process.env, {
      TOOLWRIGHT_REQUIRE_SERVICES: '1',
      TOOLWRIGHT_TEST_POSTGRES: 'postgres://somewhere/else',
      TOOLWRIGHT_TEST_REDIS: '',
      CHROMIUM_PATH: process.execPath,
    });
    await expect(findServices()).rejects.toThrow(/Redis is missing\. .*TOOLWRIGHT_TEST_REDIS/);
    delete process.env.TOOLWRIGHT_REQUIRE_SERVICES;
    await expect(findServices()).resolves.toBeUndefined();
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
});

test('tests that were skipped because a service is missing are counted in one line, and other tests are not', () => {
  const skipped = (...ancestorTitles: readonly string[]) => ({ status: 'pending', ancestorTitles });
  const passed = { status: 'passed', ancestorTitles: ['c [needs Redis]'] };
  const files = (...testResults: readonly unknown[]) => ({ testResults: [{ testResults }] });
  expect(skippedLine(files(passed, skipped('slow ones')))).toBeUndefined();
  const line = skippedLine(files(skipped('a [needs Redis]'), skipped('x', 'b [needs Redis]'), passed));
  expect(line).toBe(
    'Tests skipped: 2 that need Redis (not found with TOOLWRIGHT_TEST_REDIS or at 127.0.0.1:6379)',
  );
});

/** A network namespace hides the services of this machine; only root on Linux may create it. */
const canIsolateNetwork = spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status === 0;

(canIsolateNetwork ? test : test.skip)(
  'if no PostgreSQL is running, the tests start it, and remove its data at the end',
  async () => {
    const program = fileURLToPath(new URL('./isolated-program.mjs', import.meta.url));
    const command = 'ip link set lo up && exec "$0" "$1"';
    const { TOOLWRIGHT_TEST_POSTGRES: _1, TOOLWRIGHT_TEST_REDIS: _2, ...env } = process.env;
    const { stdout } = await promisify(execFile)(
      'unshare',
      ['--net', 'sh', '-c', command, process.execPath, program],
      { env: { ...env, TOOLWRIGHT_REQUIRE_SERVICES: '' } },
    );
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({ redis: '', wasThere: true, isThere: false });
    expect(found.url).toMatch(/^postgres:\/\/postgres:password@127\.0\.0\.1:\d+\/toolwright_test_\w+$/);
    expect(found.folder).toContain('toolwright-postgres-');
  },
);
